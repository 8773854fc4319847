package webhooks

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// encode returns the data of an event as JSON, as json.Marshal does.
func encode(data map[string]string) string {
	if data == nil {
		return "null"
	}
	var room [12]string
	names := room[:0]
	size := 2
	for name, value := range data {
		names = append(names, name)
		size += len(name) + len(value) + len(`"":"",`)
	}
	slices.Sort(names)
	text := append(make([]byte, 0, size), '{')
	for i, name := range names {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(appendText(text, name), ':')
		text = appendText(text, data[name])
	}
	return string(append(text, '}'))
}

// appendText appends a text as JSON.
func appendText(to []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= utf8.RuneSelf || strings.IndexByte(`"\<>&`, c) >= 0 {
			quoted, _ := json.Marshal(text) // of a string it has no error
			return append(to, quoted...)
		}
	}
	return append(append(append(to, '"'), text...), '"')
}
