package httpapi

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/domain"
	"agentproxy/domain/session"
)

// The scalar types of replies. Each writes itself by appending, so that an
// answer is one buffer, and describes itself to the document.

// money is an amount of US dollars: a JSON number with at most 6 decimals.
type money domain.Money

// AppendJSON appends the value.
func (m money) AppendJSON(b []byte) []byte { return domain.AppendDecimal(b, int64(m), 6) }

// MarshalJSON writes the exact decimal number.
func (m money) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (money) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeNumber} }

// limit is an amount that may be none, which is null.
type limit struct{ of *domain.Money }

// AppendJSON appends the value.
func (l limit) AppendJSON(b []byte) []byte {
	if l.of == nil {
		return append(b, "null"...)
	}
	return money(*l.of).AppendJSON(b)
}

// MarshalJSON writes the number, or null.
func (l limit) MarshalJSON() ([]byte, error) { return l.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (limit) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeNumber, Nullable: true}
}

// gigabytes is a number of bytes shown in GB: a JSON number with at most 9
// decimals.
type gigabytes int64

// AppendJSON appends the value.
func (g gigabytes) AppendJSON(b []byte) []byte { return domain.AppendDecimal(b, int64(g), 9) }

// MarshalJSON writes the exact decimal number.
func (g gigabytes) MarshalJSON() ([]byte, error) { return g.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (gigabytes) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeNumber}
}

// maybeGB is a number of bytes that a static session does not have: a negative one
// is null.
type maybeGB int64

// AppendJSON appends the value.
func (g maybeGB) AppendJSON(b []byte) []byte {
	if g < 0 {
		return append(b, "null"...)
	}
	return gigabytes(g).AppendJSON(b)
}

// MarshalJSON writes the number, or null.
func (g maybeGB) MarshalJSON() ([]byte, error) { return g.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (maybeGB) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeNumber, Nullable: true}
}

// maybeInt is an integer that may be missing: a negative one is null.
type maybeInt int64

// AppendJSON appends the value.
func (n maybeInt) AppendJSON(b []byte) []byte {
	if n < 0 {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, int64(n), 10)
}

// MarshalJSON writes the number, or null.
func (n maybeInt) MarshalJSON() ([]byte, error) { return n.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (maybeInt) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Format: "int64", Nullable: true}
}

// stamp is a time: RFC 3339 in UTC with milliseconds.
type stamp time.Time

// AppendJSON appends the value.
func (t stamp) AppendJSON(b []byte) []byte {
	b = append(b, '"')
	b = appendStamp(b, time.Time(t))
	return append(b, '"')
}

// MarshalJSON writes the time.
func (t stamp) MarshalJSON() ([]byte, error) { return t.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (stamp) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time"}
}

// maybeStamp is a time that may not have come: the zero time is null.
type maybeStamp time.Time

// AppendJSON appends the value.
func (t maybeStamp) AppendJSON(b []byte) []byte {
	if time.Time(t).IsZero() {
		return append(b, "null"...)
	}
	return stamp(t).AppendJSON(b)
}

// MarshalJSON writes the time, or null.
func (t maybeStamp) MarshalJSON() ([]byte, error) { return t.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (maybeStamp) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Nullable: true}
}

// maybeText is a string that may be none: empty is null.
type maybeText string

// AppendJSON appends the value.
func (s maybeText) AppendJSON(b []byte) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return strictjson.AppendString(b, string(s))
}

// MarshalJSON writes the string, or null.
func (s maybeText) MarshalJSON() ([]byte, error) { return s.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (maybeText) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Nullable: true}
}

// labels are an agent's own words for a session.
type labels session.Labels

// AppendJSON appends the value, in the order of the keys.
func (l labels) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	for i, key := range slices.Sorted(maps.Keys(l)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strictjson.AppendString(b, key), ':')
		b = strictjson.AppendString(b, l[key])
	}
	return append(b, '}')
}

// MarshalJSON writes the object.
func (l labels) MarshalJSON() ([]byte, error) { return l.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (labels) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: &huma.Schema{Type: huma.TypeString,
		MaxLength: new(session.MaxLabelValue)}}
}

// ratio is a number from 0 to 1 with at most 4 decimals.
type ratio float64

// AppendJSON appends the value.
func (r ratio) AppendJSON(b []byte) []byte { return appendRounded(b, float64(r), 1e4) }

// MarshalJSON writes the number.
func (r ratio) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (ratio) Schema(huma.Registry) *huma.Schema {
	zero, one := 0.0, 1.0
	return &huma.Schema{Type: huma.TypeNumber, Minimum: &zero, Maximum: &one}
}

// percent is a share in hundredths of a percent; a negative one is null.
type percent int64

// AppendJSON appends the value.
func (p percent) AppendJSON(b []byte) []byte {
	if p < 0 {
		return append(b, "null"...)
	}
	return domain.AppendDecimal(b, int64(p), 2)
}

// MarshalJSON writes the number, or null.
func (p percent) MarshalJSON() ([]byte, error) { return p.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (percent) Schema(huma.Registry) *huma.Schema {
	zero, hundred := 0.0, 100.0
	return &huma.Schema{Type: huma.TypeNumber, Nullable: true, Minimum: &zero, Maximum: &hundred}
}

// hundreds is a number of 0 and more with at most 2 decimals.
type hundreds float64

// AppendJSON appends the value.
func (h hundreds) AppendJSON(b []byte) []byte { return appendRounded(b, float64(h), 100) }

// MarshalJSON writes the number.
func (h hundreds) MarshalJSON() ([]byte, error) { return h.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (hundreds) Schema(huma.Registry) *huma.Schema {
	zero := 0.0
	return &huma.Schema{Type: huma.TypeNumber, Minimum: &zero}
}

// appendRounded appends x rounded to 1/unit without trailing zeros.
func appendRounded(b []byte, x, unit float64) []byte {
	places := len(strconv.Itoa(int(unit))) - 1
	return domain.AppendDecimal(b, int64(x*unit+0.5), places)
}

// appendStamp appends a time as RFC 3339 in UTC with milliseconds. It takes a third
// of the time of Format.
func appendStamp(b []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	b = appendPadded(b, year, 1000)
	b = appendPadded(append(b, '-'), int(month), 10)
	b = appendPadded(append(b, '-'), day, 10)
	b = appendPadded(append(b, 'T'), hour, 10)
	b = appendPadded(append(b, ':'), minute, 10)
	b = appendPadded(append(b, ':'), second, 10)
	b = appendPadded(append(b, '.'), t.Nanosecond()/1e6, 100)
	return append(b, 'Z')
}

// appendPadded appends n with leading zeros; unit is the weight of the first digit.
func appendPadded(b []byte, n, unit int) []byte {
	for ; unit > 0; unit /= 10 {
		b = append(b, byte('0'+n/unit%10))
	}
	return b
}
