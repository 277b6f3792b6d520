package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"bursar/internal/fault"
	"bursar/internal/strictjson"
)

// maxBody bounds every request body, in bytes, but for a batch of sales.
const maxBody = 64 << 10

var (
	errTooSlow = fault.New(fault.TooSlow, "request_timeout", "The body did not arrive in time. Send the request again.")
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
