package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func TestInterruptible(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789"), 400_000)
	for name, r := range map[string]io.Reader{
		"plain": bytes.NewReader(want), "byte by byte": iotest.OneByteReader(bytes.NewReader(want[:5000])), "with its end": iotest.DataErrReader(bytes.NewReader(want)),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := io.ReadAll(interruptible(context.Background(), r))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.HasPrefix(want, got) || len(got) < 5000 {
				t.Errorf("%d bytes came, not the right ones", len(got))
			}
		})
	}
	broken := errors.New("broken")
	if _, err := io.ReadAll(interruptible(context.Background(), io.MultiReader(bytes.NewReader(want), iotest.ErrReader(broken)))); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

// A read that nothing answers ends with the context.
func TestInterruptibleStalled(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(context.Background())
	in := interruptible(ctx, r)
	done := make(chan error)
	go func() {
		_, err := in.Read(make([]byte, 1))
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
