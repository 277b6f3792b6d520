package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// client calls the service's own API over HTTP.
type client struct {
	at    string
	token string
}

// signIn takes a token for the calls that follow.
func (c *client) signIn(ctx context.Context, email string) error {
	body, err := json.Marshal(map[string]string{"email": email, "password": Password})
	if err != nil {
		return err
	}
	var data struct {
		Token string `json:"token"`
	}
	err = c.post(ctx, "/api/auth/login", string(body), &data)
	c.token = data.Token
	return err
}

// post sends a body and reads the data of the answer into data, unless that is nil.
func (c *client) post(ctx context.Context, path, body string, data any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.at+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	envelope := struct {
		Success bool   `json:"success"`
		Error   string `json:"error"`
		Data    any    `json:"data"`
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&envelope); err != nil {
		return fmt.Errorf("POST %s: %w", path, err)
	}
	if !envelope.Success {
		return fmt.Errorf("POST %s was answered with %d: %s", path, response.StatusCode, envelope.Error)
	}
	return nil
}

// control changes what the gateway's sandbox has.
func (c *client) control(ctx context.Context, path, body string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, c.at+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("PUT %s was answered with %d", path, response.StatusCode)
	}
	return nil
}
