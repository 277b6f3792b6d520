package api

import (
	"context"
	"net/http"
	"time"

	"bursar/internal/auth"
)

// request is what an endpoint asks for: it takes its parts from the input, which collects problems.
type request[Req any] interface {
	*Req
	read(in *input)
}

// reply is what an endpoint answers. The zero status is 200. Beside an error only replayed counts, so what else it has may be
// of a zero result.
type reply[Data any] struct {
	status  int
	message string
	data    Data
	// replayed says that this is the answer to an earlier request under the same key.
	replayed bool
	// endCookie takes the sign-in cookie away.
	endCookie bool
	// device is set where the user's account knows the browser from now on.
	device deviceCookie
}

// answer is a reply of data, or the error.
func answer[Data any](data Data, err error) (reply[Data], error) {
	return reply[Data]{data: data}, err
}

// mapped is each of a list as the API shows it. It is never null in JSON.
func mapped[From, To any](list []From, shown func(From) To) []To {
	all := make([]To, len(list))
	for i, one := range list {
		all[i] = shown(one)
	}
	return all
}

// deviceCookie is the cookie by which a user's account knows a browser.
type deviceCookie struct{ user, token string }

func (a *api) setDevice(w http.ResponseWriter, r *http.Request, d deviceCookie) {
	if d.token == "" {
		return
	}
	for _, cookie := range a.cookies.Device(r, d.user, d.token, int(auth.DeviceLife/time.Second)) {
		http.SetCookie(w, cookie)
	}
}

// none is the request of an endpoint that reads nothing, and the data of an answer without any.
type none struct{}

func (*none) read(*input) {}

// admissionMaxAge is for how long a caller who was let in counts as such. A body can be held back until its
// sender is signed out, suspended, or another user.
const admissionMaxAge = 100 * time.Millisecond

// handle makes a handler of one typed call: it finds the caller, reads the request, calls, and writes
// the envelope. A caller without access learns nothing about the request that they sent.
func handle[Req, Data any, P request[Req]](
	a *api, admit gate, call func(context.Context, caller, Req) (reply[Data], error),
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := a.o.Now()
		who, err := admit(r)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		var req Req
		in := input{api: a, w: w, r: r}
		P(&req).read(&in)
		if err := in.problem(); err != nil {
			if who.isUnconfirmed() { // one without access learns nothing about the request
				if _, refused := who.confirm(); refused != nil {
					err = refused
				}
			}
			a.fail(w, r, err)
			return
		}
		if a.o.Now().Sub(began) > admissionMaxAge {
			if who, err = admit(r); err != nil {
				a.fail(w, r, err)
				return
			}
		}
		made, err := call(r.Context(), who, req)
		if made.replayed {
			w.Header().Set("Idempotent-Replayed", "true")
		}
		if err != nil {
			a.fail(w, r, err)
			return
		}
		if made.endCookie {
			http.SetCookie(w, a.cookies.SignIn("", -1))
		}
		a.setDevice(w, r, made.device)
		if made.status == 0 {
			made.status = http.StatusOK
		}
		a.write(w, r, made.status, success[Data]{Success: true, Message: made.message, Data: made.data})
	}
}
