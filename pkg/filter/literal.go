package filter

// literal is a value as it stands in a filter, before the column gives it a type.
type literal struct {
	kind   literalKind
	number number
	bool   bool
	text   string // of a text; the bytes of a binary literal
	as     string // DATE, TIME, TIMESTAMP or UUID where the text stands behind one of these words
	json   bool   // a text out of JSON, where binary values are hexadecimal texts
	at     span
}

type literalKind int

const (
	nullLiteral literalKind = iota
	boolLiteral
	numberLiteral
	textLiteral
	binaryLiteral
)

// show names the literal in a message.
func (l literal) show() string {
	return shorten(printLiteral(l))
}

// typedTexts are the words that may stand before a text and say what it is.
var typedTexts = []string{"DATE", "TIME", "TIMESTAMP", "UUID"}
