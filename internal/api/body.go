package api

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"

	"bursar/internal/fault"
	"bursar/internal/strictjson"
)

// maxBody bounds every request body, in bytes, but for a batch of sales.
const maxBody = 64 << 10

var (
	errTooSlow = fault.New(fault.TooSlow, "request_timeout", "The body did not arrive in time. Send the request again.")
	errEncoded = fault.New(fault.Unsupported, "unsupported_encoding", "The body is compressed. Send it without Content-Encoding.")
	errCharset = errEncoded.WithMessage("The body's charset is not supported. Send it as UTF-8.")
	errBody    = fault.New(fault.Malformed, "invalid_json", "The body must be one JSON object.")
)

// tooLargeFor refuses a body of more than so many bytes.
func tooLargeFor(most int64) error {
	return fault.New(fault.TooLarge, "body_too_large", fmt.Sprintf("The body is larger than %d KiB.", most>>10))
}

// readBody reads no more of a body than is allowed.
func readBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, tooLargeFor(most)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, errTooSlow
	}
	if err != nil {
		return nil, errBody.WithMessage("The body could not be read to its end.").Because(err)
	}
	return body, nil
}

// checkEncoding refuses a body that is compressed, or of another charset than UTF-8. Its media type is not asked for: curl -d calls
// JSON a form. With a cookie it has to be JSON, see [asOurPagesSend].
func checkEncoding(h http.Header) error {
	for _, encoding := range h.Values("Content-Encoding") {
		if encoding != "" && !strings.EqualFold(encoding, "identity") {
			return errEncoded
		}
	}
	_, parameters, err := mime.ParseMediaType(h.Get("Content-Type"))
	if charset := parameters["charset"]; err == nil && charset != "" && !slices.Contains([]string{"utf-8", "utf8", "us-ascii"}, strings.ToLower(charset)) {
		return errCharset
	}
	return nil
}

// parseObject reads a JSON object and returns the text of each of its members.
func parseObject(body []byte) (map[string][]byte, error) {
	members, err := strictjson.Object(body)
	if err != nil {
		err = errBody.WithMessage("The body %s.", err)
	}
	return members, err
}

// unquote decodes a JSON string that is known to be valid.
func unquote(quoted []byte) (string, error) {
	s, err := strictjson.Unquote(quoted)
	if err != nil {
		err = errBody.Because(err)
	}
	return s, err
}
