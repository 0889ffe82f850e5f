package replica

import (
	"errors"
	"fmt"
	"net/http"
)

// apiError is an error that the client gets, in the shape of vLLM and OpenAI.
type apiError struct {
	status  int
	param   string
	message string
}

func (e *apiError) Error() string { return e.message }

var errorTypes = map[int]string{
	http.StatusBadRequest:            "BadRequestError",
	http.StatusNotFound:              "NotFoundError",
	http.StatusRequestEntityTooLarge: "BadRequestError",
	http.StatusTooManyRequests:       "RateLimitError",
	http.StatusServiceUnavailable:    "ServiceUnavailableError",
}

func (e *apiError) write(w http.ResponseWriter) {
	kind := errorTypes[e.status]
	if kind == "" {
		kind = "InternalServerError"
	}
	var param any
	if e.param != "" {
		param = e.param
	}
	writeJSON(w, e.status, object{"error": object{
		"message": e.message, "type": kind, "param": param, "code": e.status,
	}})
}

func badRequest(err error) *apiError {
	return &apiError{status: http.StatusBadRequest, message: err.Error()}
}

// unreadable is the error for a body that could not be read to its end: too
// large, or the client has left.
func unreadable(err error) error {
	var tooLarge *http.MaxBytesError
	if !errors.As(err, &tooLarge) {
		return errClientGone
	}
	return &apiError{
		status:  http.StatusRequestEntityTooLarge,
		message: fmt.Sprintf("request body: want at most %d bytes", tooLarge.Limit),
	}
}

// tooLong is the error for a request that no engine step could ever admit.
func tooLong(tokens, limit int) *apiError {
	return &apiError{
		status:  http.StatusBadRequest,
		message: fmt.Sprintf("request of %d tokens, answer included: want at most %d, the KV cache", tokens, limit),
	}
}

func unknownModel(name string) *apiError {
	return &apiError{
		status: http.StatusNotFound, param: "model",
		message: fmt.Sprintf("The model `%s` does not exist.", name),
	}
}

func unknownPath(req *http.Request) *apiError {
	return &apiError{
		status:  http.StatusNotFound,
		message: fmt.Sprintf("%s %s: no such path", req.Method, req.URL.Path),
	}
}

func requestedStatus(status int) *apiError {
	return &apiError{status: status, message: fmt.Sprintf("status %d, as x-replica-status asked", status)}
}
