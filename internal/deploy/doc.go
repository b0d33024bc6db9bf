// Package deploy checks what deploys queuehook: the Dockerfile by BuildKit's own rules, compose.yaml by Compose's own loader,
// the Helm chart by Helm's own engine and Kubernetes's own types. It contacts nothing.
package deploy
