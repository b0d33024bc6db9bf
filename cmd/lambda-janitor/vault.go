package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"

	"github.com/queuehook/queuehook/config"
)

// readFor bounds the reading of a secret, the SDK's repetitions included.
const readFor = 8 * time.Second

var (
	errDenied = errors.New("access denied: whoever runs this needs secretsmanager:GetSecretValue on it, and kms:Decrypt on " +
		"the key when that is not AWS's own")
	errNoText = errors.New("it holds no text")
	errObject = errors.New("it holds a JSON object: put the key of the password behind the ARN, written :password::, to pick it")
	errNoKey  = errors.New("it holds no JSON object with a text under the key behind the ARN")
)

// vault keeps Redis's password, which it reads from AWS Secrets Manager: for a process's first sweep, at a function's cold
// start that is, and anew when Redis refuses it. One sweep at a time uses it.
type vault struct {
	id       config.SecretID
	password config.Secret // empty = not read yet
}

// newVault returns nil when no secret is configured.
func newVault(id config.SecretID) *vault {
	if id.ARN == "" {
		return nil
	}
	return &vault{id: id}
}

// read reads the secret. The credentials are the environment's: Lambda's own, or whatever the AWS SDK finds.
func (v *vault) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readFor)
	defer cancel()
	text, err := v.fetch(ctx)
	if err == nil {
		v.password, err = v.part(text)
	}
	if err != nil {
		return fmt.Errorf("read secret %s: %w", v.id.ARN, err)
	}
	return nil
}

func (v *vault) fetch(ctx context.Context) (string, error) {
	environment, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(v.id.Region), awsconfig.WithLogger(logging.Nop{}))
	if err != nil {
		return "", err
	}
	in := &secretsmanager.GetSecretValueInput{SecretId: &v.id.ARN}
	if v.id.Stage != "" {
		in.VersionStage = &v.id.Stage
	}
	if v.id.Version != "" {
		in.VersionId = &v.id.Version
	}
	out, err := secretsmanager.NewFromConfig(environment).GetSecretValue(ctx, in)
	if err != nil {
		return "", explain(err)
	}
	return aws.ToString(out.SecretString), nil
}

// explain says in an operator's words why a secret could not be read.
func explain(err error) error {
	if answer, ok := errors.AsType[smithy.APIError](err); ok {
		if answer.ErrorCode() == "AccessDeniedException" {
			return errDenied
		}
		return fmt.Errorf("%s: %s", answer.ErrorCode(), answer.ErrorMessage())
	}
	if sent, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("its service can't be reached (from within a VPC that takes an endpoint for it, or a NAT): %w", sent.Err)
	}
	return err
}

// part returns the secret's text, or the value under the key in it. No error shows any of it.
func (v *vault) part(text string) (config.Secret, error) {
	if text == "" {
		return "", errNoText
	}
	var object map[string]any
	isObject := json.Unmarshal([]byte(text), &object) == nil && object != nil
	if v.id.Key == "" {
		if isObject {
			return "", errObject
		}
		return config.Secret(text), nil
	}
	value, _ := object[v.id.Key].(string)
	if value == "" {
		return "", errNoKey
	}
	return config.Secret(value), nil
}
