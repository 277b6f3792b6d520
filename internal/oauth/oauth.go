// Package oauth signs people in at identity providers, by OpenID Connect or plain OAuth 2.0.
package oauth
