{{- define "queuehook.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end }}
{{- end }}

{{- /* Kubernetes appends 11 characters for each job, and takes 63. */}}
{{- define "queuehook.janitor" -}}
{{ include "queuehook.name" . | trunc 44 | trimSuffix "-" }}-janitor
{{- end }}

{{- /* An image with its tag, or with the digest that it is named with; called with the root and the image. */}}
{{- define "queuehook.image" -}}
{{ contains "@" .image | ternary .image (printf "%s:%s" .image (.root.Values.image.tag | default .root.Chart.AppVersion)) }}
{{- end }}

{{- /* What a label takes of the tag. */}}
{{- define "queuehook.version" -}}
{{ .Values.image.tag | default .Chart.AppVersion | trunc 63 | trimAll "-_." }}
{{- end }}

{{- define "queuehook.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "queuehook.labels" -}}
{{ include "queuehook.selector" . }}
app.kubernetes.io/version: {{ include "queuehook.version" . | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* What both kinds of pods are allowed: next to nothing. */}}
{{- define "queuehook.pod" -}}
serviceAccountName: {{ include "queuehook.name" . }}
automountServiceAccountToken: false
# A Service named dispatcher or janitor would otherwise add variables with the prefix of the settings.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{- define "queuehook.container" -}}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- /* The settings that say where Redis is; called with the root and the prefix. */}}
{{- define "queuehook.redis.env" -}}
{{- $redis := .root.Values.redis }}
{{- if $redis.url }}
- {name: {{ .prefix }}_REDIS_URL, value: {{ $redis.url | quote }}}
{{- else if and $redis.secret $redis.urlKey }}
- {name: {{ .prefix }}_REDIS_URL_FILE, value: /run/secrets/redis/{{ $redis.urlKey }}}
{{- else }}
{{- fail "redis: want url, or secret and urlKey" }}
{{- end }}
{{- if $redis.passwordKey }}
- {name: {{ .prefix }}_REDIS_PASSWORD_FILE, value: /run/secrets/redis/{{ $redis.passwordKey }}}
{{- end }}
{{- if $redis.sentinelPasswordKey }}
- {name: {{ .prefix }}_REDIS_SENTINEL_PASSWORD_FILE, value: /run/secrets/redis/{{ $redis.sentinelPasswordKey }}}
{{- end }}
{{- if $redis.username }}
- {name: {{ .prefix }}_REDIS_USERNAME, value: {{ $redis.username | quote }}}
{{- end }}
{{- if $redis.cluster }}
- {name: {{ .prefix }}_REDIS_CLUSTER, value: "true"}
{{- end }}
{{- if $redis.tlsSecret }}
- {name: {{ .prefix }}_REDIS_CA_FILE, value: /run/secrets/redis-tls/ca.crt}
{{- if $redis.clientCertificate }}
- {name: {{ .prefix }}_REDIS_CERT_FILE, value: /run/secrets/redis-tls/tls.crt}
- {name: {{ .prefix }}_REDIS_KEY_FILE, value: /run/secrets/redis-tls/tls.key}
{{- end }}
{{- end }}
{{- end }}

{{- define "queuehook.redis.mounts" -}}
{{- if .Values.redis.secret }}
- {name: redis, mountPath: /run/secrets/redis, readOnly: true}
{{- end }}
{{- if .Values.redis.tlsSecret }}
- {name: redis-tls, mountPath: /run/secrets/redis-tls, readOnly: true}
{{- end }}
{{- end }}

{{- define "queuehook.redis.volumes" -}}
{{- if .Values.redis.secret }}
- {name: redis, secret: {secretName: {{ .Values.redis.secret }}, defaultMode: 0440}}
{{- else if or .Values.redis.urlKey .Values.redis.passwordKey .Values.redis.sentinelPasswordKey }}
{{- fail "redis: a key is of no use without secret" }}
{{- end }}
{{- if .Values.redis.tlsSecret }}
- {name: redis-tls, secret: {secretName: {{ .Values.redis.tlsSecret }}, defaultMode: 0440}}
{{- end }}
{{- end }}

{{- /* Further settings of a program; called with the prefix and the settings. */}}
{{- define "queuehook.settings" -}}
{{- $prefix := .prefix }}
{{- range $name, $value := .settings }}
{{- if regexMatch "^(DISPATCHER_|JANITOR_|REDIS_|ROUTES|ADMIN_ADDR$|SHUTDOWN_GRACE$)" $name }}
{{- fail (printf "settings.%s: want a name without its prefix, of a setting that has no value of its own here" $name) }}
{{- end }}
{{- /* Numbers of a values file are floats: quoted as they are, 1000000 would read 1e+06. */}}
- {name: {{ $prefix }}_{{ $name }}, value: {{ kindIs "float64" $value | ternary (toJson $value) $value | quote }}}
{{- end }}
{{- end }}
