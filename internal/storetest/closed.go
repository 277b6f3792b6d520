package storetest

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"bursar/internal/store"
)

// testClosed calls each method of a closed database that can fail. An error that is dropped on the way would say that there is
// nothing, or that something was stored.
func testClosed(_ *testing.T, b *bench) {
	b.must(b.db.Ping(b.ctx()))
	b.must(b.db.Close())
	views := []any{b.db, b.db.Auth(), b.db.Bank(), b.db.Sales(), b.db.Payouts(), b.db.Mails(), b.db.Webhooks(), b.db.Reconciling("paper")}
	for _, view := range views {
		v := reflect.ValueOf(view)
		for i := range v.NumMethod() {
			name, method := fmt.Sprintf("%T.%s", view, v.Type().Method(i).Name), v.Method(i)
			args, fails := argumentsOf(b, method.Type())
			if !fails {
				continue
			}
			results := method.Call(args)
			if err, _ := reflect.TypeAssert[error](results[len(results)-1]); err == nil {
				b.Errorf("%s succeeds", name)
			}
		}
	}
}

func argumentsOf(b *bench, f reflect.Type) (args []reflect.Value, fails bool) {
	if f.NumIn() == 0 || f.In(0) != reflect.TypeFor[context.Context]() || f.NumOut() == 0 || f.Out(f.NumOut()-1) != reflect.TypeFor[error]() {
		return nil, false
	}
	args = append(args, reflect.ValueOf(b.ctx()))
	for i := 1; i < f.NumIn(); i++ {
		if f.IsVariadic() && i == f.NumIn()-1 {
			break
		}
		args = append(args, valueOf(b, f.In(i)))
	}
	return args, true
}

func valueOf(b *bench, t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case t == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(b.now))
	case t.Kind() == reflect.Func:
		v.Set(reflect.MakeFunc(t, func([]reflect.Value) []reflect.Value {
			out := make([]reflect.Value, t.NumOut())
			for i := range out {
				out[i] = reflect.Zero(t.Out(i))
			}
			return out
		}))
	case t.Kind() == reflect.Slice:
		v.Set(reflect.Append(v, valueOf(b, t.Elem())))
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		v.SetInt(1)
	case t.Kind() == reflect.String:
		v.SetString("x")
	case t == reflect.TypeFor[store.AuditKeys]():
		v.Set(reflect.ValueOf(b.keys))
	}
	return v
}
