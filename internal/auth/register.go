package auth

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"bursar/internal/fault"
	"bursar/internal/id"
)

// Registration asks for a user.
type Registration struct {
	Name     string
	Email    string
	Password string
	Role     Role // none is buyer
	Device   Device
}

// Register makes a user, who may be a buyer or a seller, signs them in, and mails them a link and a code to confirm their
// address with. It fails with a fault that names the fields at fault, with [ErrEmailTaken], [ErrEmailReserved],
// [ErrThrottled] or [ErrBusy].
// An address that is taken gets a mail too, see [Service.mailRegisteredAgain].
func (s *Service) Register(ctx context.Context, r Registration) (SignIn, error) {
	role, allowed := ParseRole(string(r.Role))
	problems := s.problems(r)
	if !allowed {
		problems["role"] = "must be seller or buyer"
	}
	if len(problems) > 0 {
		return SignIn{}, fault.Fields(fault.Invalid, problems)
	}
	r.Role = role
	_, leave, err := s.begin(ctx, try{action: registration, address: r.Device.site()})
	if err != nil {
		return SignIn{}, err
	}
	defer leave()
	user, err := s.newUser(ctx, r)
	if err != nil {
		return SignIn{}, err
	}
	session := newSession(user.ID, user.CreatedAt, r.Device, MethodPassword)
	signIn, err := s.signInto(user, session.ID, session.Counter, user.CreatedAt)
	if err != nil {
		return SignIn{}, err
	}
	if signIn.DeviceToken, err = s.deviceToken(user, "", user.CreatedAt); err != nil {
		return SignIn{}, err
	}
	taken := false
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		err := tx.InsertUser(ctx, user)
		if taken = errors.Is(err, ErrEmailTaken); taken {
			return s.mailRegisteredAgain(ctx, tx, user, r.Device)
		}
		if err != nil {
			return err
		}
		if err := tx.InsertSession(ctx, session); err != nil {
			return err
		}
		return s.mailVerification(ctx, tx, user, r.Device, user.CreatedAt, true)
	})
	if err == nil && taken {
		err = ErrEmailTaken
	}
	if err != nil {
		return SignIn{}, err
	}
	s.o.Logger.InfoContext(ctx, "registered", slog.String("user_id", user.ID), slog.String("role", string(user.Role)))
	return signIn, nil
}

// CreateUser makes a user of any role for the operator, and signs nobody in. It mails them a link to confirm their address with:
// only the owner of a confirmed address can undo a change of it.
func (s *Service) CreateUser(ctx context.Context, r Registration) (User, error) {
	problems := s.problems(r)
	if r.Role != Buyer && r.Role != Seller && r.Role != Admin {
		problems["role"] = "must be buyer, seller or admin"
	}
	if len(problems) > 0 {
		return User{}, fault.Fields(fault.Invalid, problems)
	}
	user, err := s.newUser(ctx, r)
	if err != nil {
		return User{}, err
	}
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		if err := tx.InsertUser(ctx, user); err != nil {
			return err
		}
		return s.mailVerification(ctx, tx, user, Device{}, user.CreatedAt, true)
	})
	if err != nil {
		return User{}, err
	}
	return user, nil
}

// problems is what is wrong with a registration's name, e-mail and password, by field.
func (s *Service) problems(r Registration) map[string]string {
	found := map[string]string{}
	note := func(field, problem string) {
		if problem != "" && found[field] == "" {
			found[field] = problem
		}
	}
	note("name", CheckName(r.Name))
	note("email", CheckEmail(r.Email))
	note("password", CheckPassword(r.Password))
	note("password", s.common.check(r.Password, r.Name, r.Email))
	return found
}

// newUser makes a user that is not stored yet. The password is hashed even if the address is taken: the same work hides
// whether the account with it is verified, and the hash is kept if it is not.
func (s *Service) newUser(ctx context.Context, r Registration) (User, error) {
	hash, err := s.passwords.hash(ctx, r.Password)
	if err != nil {
		return User{}, err
	}
	now := s.o.Now().UTC().Truncate(time.Microsecond) // as it will be read back
	return User{
		ID: id.New(UserIDPrefix, now), Name: r.Name, Email: r.Email, Role: r.Role, PasswordHash: hash, CreatedAt: now,
	}, nil
}
