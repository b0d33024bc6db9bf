package delivery

import (
	"net/http"
	"slices"
	"strings"
)

// Invocation is the answer to an Invoke call of AWS Lambda.
type Invocation struct {
	Status int
	Header http.Header
	// Code names the error of a call that Lambda refused, as its API reference does; empty when it took the call.
	Code string
	// Message is the text of that error.
	Message string
	// FunctionError says that the function ran and failed: Handled or Unhandled, whatever the status.
	FunctionError string
	// ErrorType is what the failed function calls its error.
	ErrorType string
	// Log is the tail of the function's log.
	Log string
}

// ClassifyInvocation says what an answer of Lambda means. Of the rules only those on waiting apply. Codes are those of
// https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html and, for access, of
// https://docs.aws.amazon.com/lambda/latest/api/CommonErrors.html.
func ClassifyInvocation(a Invocation, rules Rules) Outcome {
	wait, asked := RetryAfter(a.Header, rules.Now, rules.MaxRetryAfter)
	o := invoked(a, asked)
	o.Log = a.Log
	if o.Settlement == Abandon {
		o.RetryAfter = wait
	}
	return o
}

// invoked is the outcome but for the wait. asked says that a usable Retry-After came with the answer.
func invoked(a Invocation, asked bool) Outcome {
	switch {
	case a.FunctionError != "" && strings.HasPrefix(a.ErrorType, "NonRetryable"):
		return answered(Rejected, a.Status, a.ErrorType)
	case a.FunctionError != "":
		return answered(FunctionError, a.Status, strings.TrimSpace(a.FunctionError+" "+a.ErrorType))
	case a.Code == "" && a.Status >= 200 && a.Status <= 299:
		return answered(OK, a.Status, "")
	case isThrottle(a.Code):
		return answered(Throttled, a.Status, a.explained())
	case isContent(a.Code) || a.Status == http.StatusRequestEntityTooLarge || a.Status == http.StatusUnsupportedMediaType:
		return answered(Rejected, a.Status, a.Code)
	case isSetup(a.Code):
		return answered(Target, a.Status, a.explained())
	}
	o := byStatus(a.Status, nil, asked)
	o.Detail = clip(a.Code)
	return o
}

// explained is the code and the text of an error of Lambda's own. Which limit was met, who may not do what, and what is
// missing, is for the operator to know; the texts of these errors hold no payload.
func (a Invocation) explained() string { return strings.TrimSuffix(a.Code+": "+a.Message, ": ") }

// isThrottle says that Lambda, or what it needs, asks for time.
func isThrottle(code string) bool {
	return code == "TooManyRequestsException" || code == "EC2ThrottledException" || code == "ThrottlingException"
}

// isContent says that Lambda will never take this payload.
func isContent(code string) bool {
	return code == "InvalidRequestContentException" || code == "RequestTooLargeException" ||
		code == "UnsupportedMediaTypeException"
}

// isSetup says that the function can't be started, for whatever task: it, its network, its disks, its keys, or our access
// to it must be put right, by somebody or by Lambda itself.
func isSetup(code string) bool {
	switch code {
	case "ResourceNotFoundException", "ResourceConflictException", "ResourceNotReadyException", "InvalidZipFileException",
		"InvalidRuntimeException", "InvalidSubnetIDException", "InvalidSecurityGroupIDException",
		"SubnetIPAddressLimitReachedException", "ModeNotSupportedException", "NoPublishedVersionException",
		"RuntimeAliasDeletedException", "RuntimeVersionDeletedException",
		"AccessDeniedException", "UnrecognizedClientException", "InvalidSignatureException", "InvalidClientTokenId",
		"ExpiredTokenException", "RequestExpired", "IncompleteSignature", "MissingAuthenticationToken",
		"MissingAuthenticationTokenException", "NotAuthorized", "OptInRequired":
		return true
	}
	return slices.ContainsFunc([]string{"CodeArtifactUser", "EC2", "EFS", "ENI", "KMS", "S3FilesMount", "SnapStart"},
		func(kind string) bool { return strings.HasPrefix(code, kind) })
}
