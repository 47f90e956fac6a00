package filter

import (
	"math/big"
	"strconv"
	"strings"
)

const (
	maxDigits   = 1000 // of a number literal
	maxExponent = 1000
)

// number is an exact decimal number: units times ten to the power of exp, units without zeros at its end.
type number struct {
	units *big.Int
	exp   int
}

// parseNumber reads what numberLength takes for a number. It returns false for one that is too long.
func parseNumber(s string) (number, bool) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	exp := 0
	if exponent != "" {
		var err error
		if exp, err = strconv.Atoi(exponent); err != nil || exp > maxExponent || exp < -maxExponent {
			return number{}, false
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if len(whole)+len(fraction) > maxDigits {
		return number{}, false
	}
	units, ok := new(big.Int).SetString(strings.TrimPrefix(whole, "+")+fraction, 10)
	if !ok {
		return number{}, false
	}
	return number{units, exp - len(fraction)}.short(), true
}

func wholeNumber(n int64) number { return number{big.NewInt(n), 0}.short() }

// short is the number with no zeros at the end of its units.
func (n number) short() number {
	if n.units.Sign() == 0 {
		return number{new(big.Int), 0}
	}
	digits := n.units.String()
	zeros := len(digits) - len(strings.TrimRight(digits, "0"))
	if zeros == 0 {
		return n
	}
	units, _ := new(big.Int).SetString(digits[:len(digits)-zeros], 10)
	return number{units, n.exp + zeros}
}

// String writes the number as parseNumber reads it.
func (n number) String() string {
	digits := new(big.Int).Abs(n.units).String()
	sign := ""
	if n.units.Sign() < 0 {
		sign = "-"
	}
	switch {
	case n.exp > 40 || n.exp < -60:
		exp := n.exp + len(digits) - 1
		if len(digits) > 1 {
			digits = digits[:1] + "." + digits[1:]
		}
		return sign + digits + "e" + strconv.Itoa(exp)
	case n.exp >= 0:
		return sign + digits + strings.Repeat("0", n.exp)
	}
	if zeros := -n.exp - len(digits) + 1; zeros > 0 {
		digits = strings.Repeat("0", zeros) + digits
	}
	point := len(digits) + n.exp
	return sign + digits[:point] + "." + digits[point:]
}

// floor returns the greatest integer that is not greater than n times ten to the power of scale, and
// whether it is that number.
func (n number) floor(scale int) (*big.Int, bool) {
	exp := n.exp + scale
	if exp >= 0 {
		return new(big.Int).Mul(n.units, power(exp)), true
	}
	floor, rest := new(big.Int), new(big.Int)
	floor.DivMod(n.units, power(-exp), rest) // Euclidean: the rest is never negative
	return floor, rest.Sign() == 0
}

func power(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}
