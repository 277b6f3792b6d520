package auth

import (
	"context"
	"errors"
	"log/slog"

	"bursar/internal/fault"
)

// Kinds of rows that are refused if they were changed in the database.
const (
	tamperedServiceKey = "service_key"
	tamperedSession    = "session"
	tamperedUser       = "user"
	tamperedIdentity   = "identity"
	tamperedMailToken  = "mail_token"
	tamperedFactor     = "factor"

	tamperedSessionLink = "session_link"
)

// TamperedKinds lists the kinds of rows that [Options.Tampered] is called with.
func TamperedKinds() []string {
	return []string{tamperedServiceKey, tamperedSession, tamperedUser, tamperedIdentity, tamperedMailToken, tamperedFactor, tamperedSessionLink}
}

// tampered tells the operator of a row that was changed outside the service and that was therefore refused.
func (s *Service) tampered(ctx context.Context, kind string, attrs ...slog.Attr) {
	s.o.Logger.LogAttrs(ctx, slog.LevelError, "row changed outside bursar", append([]slog.Attr{slog.String("kind", kind)}, attrs...)...)
	if s.o.Tampered != nil {
		s.o.Tampered(kind)
	}
}

// refuseTampered tells the operator if err is [ErrTampered], and makes it the answer that a caller may see. It returns any other err as it is.
func (s *Service) refuseTampered(ctx context.Context, err error, answer *fault.Error, kind string, attrs ...slog.Attr) error {
	if !errors.Is(err, ErrTampered) {
		return err
	}
	s.tampered(ctx, kind, attrs...)
	return answer.Because(err)
}
