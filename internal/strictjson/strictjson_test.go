package strictjson_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"bursar/internal/strictjson"
)

func FuzzObject(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"a":1}`, ` { "a" : [ 1 , { "b" : null } ] , "c" : "\"\\\/\u00e9" } `, `{"a":"\ud83d\ude00"}`,
		`{"":0}`, `{"a":-1.5e+7,"b":true,"c":false}`, `{"a":{},"b":[]}`, `{"a":1,}`, `{"a":1}{"a":1}`, `{"\ud800":1}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		members, err := strictjson.Object(text)
		var standard map[string]json.RawMessage
		standardErr := json.Unmarshal(text, &standard)
		if err != nil {
			return
		}
		if standardErr != nil || !utf8.Valid(text) {
			t.Fatalf("accepted what encoding/json refuses: %v", standardErr)
		}
		if len(members) != len(standard) {
			t.Fatalf("%d members, and encoding/json has %d", len(members), len(standard))
		}
		for name, value := range members {
			if string(value) != string(standard[name]) {
				t.Fatalf("member %q is %q, and encoding/json has %q", name, value, standard[name])
			}
		}
	})
}

func TestObject_AcceptsAllOfJSON(t *testing.T) {
	text := " {\t\"a\" : [1, {\"b\":null}] ,\r\n \"\\u0063\":\"\\ud83d\\ude00 \\\" } , \\\\\", \"d\":-1.5e+7 } \n"
	want := map[string]string{"a": `[1, {"b":null}]`, "c": `"\ud83d\ude00 \" } , \\"`, "d": `-1.5e+7`}
	got, err := strictjson.Object([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Errorf("%d members, want %d", len(got), len(want))
	}
	for name, value := range want {
		if string(got[name]) != value {
			t.Errorf("%s is %s, want %s", name, got[name], value)
		}
	}
}

func TestObject_SaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "is not valid JSON; it must be one JSON object",
		`{"a":1} x`:           "is not valid JSON; it must be one JSON object",
		`[]`:                  "must be one JSON object",
		"{\"a\":\"\xff\"}":    "is not valid UTF-8",
		`{"a":1,"\u0061":2}`:  `names "a" twice`,
		`{"a":{"b":1,"b":2}}`: `names "b" twice`,
		`{"a":"\ud83dx"}`:     "holds half a surrogate pair, which is no character",
		`{"a":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}`: "is nested too deeply",
	} {
		if _, err := strictjson.Object([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: %v; want %s", text, err, want)
		}
	}
}
