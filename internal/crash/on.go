//go:build crash

package crash

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// variable holds POINT or POINT:N, the N-th time that the point is passed. holder holds POINT@SOCKET: each
// time that the point is passed a connection to the Unix socket is made, and held until the other end closes it.
const (
	variable = "ICEPIPE_CRASH"
	holder   = "ICEPIPE_HOLD"
)

var passed [64]atomic.Int64 // by the place in Points

// Here kills the process, as kill -9 does, when ICEPIPE_CRASH names the point and it is passed for the
// N-th time. It waits when ICEPIPE_HOLD names the point. A name that is not in Points is a panic.
func Here(point string) {
	i := slices.Index(Points, point)
	if i < 0 {
		panic(fmt.Sprintf("crash point %q is not in the list", point))
	}
	if name, socket, _ := strings.Cut(os.Getenv(holder), "@"); name == point {
		hold(socket)
	}
	name, at, _ := strings.Cut(os.Getenv(variable), ":")
	if name != point {
		return
	}
	n, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		n = 1
	}
	if passed[i].Add(1) != n {
		return
	}
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal may arrive a moment later
}

// hold waits until the one who listens at the socket lets the process go on.
func hold(socket string) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	if _, err := io.Copy(io.Discard, conn); err != nil {
		panic(err)
	}
}
