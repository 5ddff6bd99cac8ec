{{- define "docflow.name" -}}
{{- if contains "docflow" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-docflow" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "docflow.selector" -}}
app.kubernetes.io/name: docflow
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "docflow.labels" -}}
{{ include "docflow.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "docflow.image" -}}
{{- with get .root.Values.image .kind.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ $.root.Values.image.tag | default $.root.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* Refuse names that no process reads, and secrets that would stand in clear. */}}
{{- define "docflow.checkNames" -}}
{{- range $name, $_ := .settings }}
{{- if has $name $.knownSecrets }}{{ fail (printf "%s: %s is a secret; move it to secrets" $.where $name) }}{{ end }}
{{- if not (has $name $.knownSettings) }}{{ fail (printf "%s: no process of the chart reads %s, or the chart sets it itself" $.where $name) }}{{ end }}
{{- end }}
{{- range $name, $_ := .secrets }}
{{- if not (has $name $.knownSecrets) }}{{ fail (printf "%s: %s is not a secret that a process of the chart reads" $.where $name) }}{{ end }}
{{- end }}
{{- end }}

{{/*
Every process that is deployed, by the name of its kind: what files/kinds.yaml says of it, the values of its
entry, its variables and secrets, and its memory in MB.
*/}}
{{- define "docflow.processes" -}}
{{- $kinds := .Files.Get "files/kinds.yaml" | fromYaml }}
{{- $settings := list }}
{{- $secrets := list }}
{{- range $kinds }}
{{- $settings = concat $settings .settings }}
{{- $secrets = concat $secrets .secrets }}
{{- end }}
{{- $known := dict "knownSettings" $settings "knownSecrets" $secrets }}
{{- include "docflow.checkNames" (merge (dict "where" "values" "settings" .Values.settings "secrets" .Values.secrets) $known) }}
{{- range $name, $_ := .Values.processes }}
{{- if not (hasKey $kinds $name) }}{{ fail (printf "processes.%s: there is no such kind of process; there are %s" $name (keys $kinds | sortAlpha | join ", ")) }}{{ end }}
{{- end }}
{{- $found := dict }}
{{- range $name, $kind := $kinds }}
{{- $given := get $.Values.processes $name | default dict }}
{{- $values := mergeOverwrite (deepCopy $.Values.defaults) (deepCopy $given) }}
{{- $own := dict "knownSettings" $kind.settings "knownSecrets" $kind.secrets "where" (printf "processes.%s" $name) "settings" ($given.settings | default dict) "secrets" ($given.secrets | default dict) }}
{{- include "docflow.checkNames" $own }}
{{- $allSettings := mergeOverwrite (dict) $.Values.settings ($given.settings | default dict) }}
{{- $allSecrets := mergeOverwrite (dict) $.Values.secrets ($given.secrets | default dict) }}
{{- $enabled := and (not $kind.alone) (or (not $kind.enabledBy) (hasKey $allSettings $kind.enabledBy)) }}
{{- if hasKey $given "enabled" }}{{ $enabled = $given.enabled }}{{ end }}
{{- if $enabled }}
{{- $variables := dict }}
{{- range $slots, $number := $kind.slots }}{{ $_ := set $variables $slots (int $number | toString) }}{{ end }}
{{- range $variable, $value := $allSettings }}
{{- if has $variable $kind.settings }}{{ $_ := set $variables $variable $value }}{{ end }}
{{- end }}
{{- $ofSecret := dict }}
{{- range $variable, $value := $allSecrets }}
{{- if has $variable $kind.secrets }}{{ $_ := set $ofSecret $variable $value }}{{ end }}
{{- end }}
{{- $memory := $kind.memory }}
{{- $request := int $memory.own }}
{{- if $memory.activity }}{{ $request = add $request (mul (int $memory.activity) (int (get $variables "DOCFLOW_ACTIVITY_SLOTS"))) }}{{ end }}
{{- $read := 0 }}
{{- range $memory.readers }}
{{- $atOnce := int .atOnce }}
{{- range .slots }}{{ $atOnce = add $atOnce (int (get $variables .)) }}{{ end }}
{{- $each := int .each }}
{{- if .setting }}{{ $each = int (get $variables .setting | default .each) }}{{ end }}
{{- $request = add $request (mul $atOnce (int .kept)) }}
{{- $read = add $read (mul $atOnce $each) }}
{{- end }}
{{- $secret := "" }}
{{- if $values.existingSecret }}{{ $secret = $values.existingSecret }}{{ else if $ofSecret }}{{ $secret = printf "%s-%s" (include "docflow.name" $) $name }}{{ end }}
{{- $_ := set $found $name (dict "kind" $kind "values" $values "variables" $variables "secrets" $ofSecret "secret" $secret "request" $request "limit" (add $request (int $memory.more) $read)) }}
{{- end }}
{{- end }}
{{- $found | toYaml }}
{{- end }}

{{/* What a Job before an installation needs has to be there before it. */}}
{{- define "docflow.hook" -}}
helm.sh/hook: pre-install,pre-upgrade
helm.sh/hook-weight: "-10"
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{/* The pod of a process: `root`, `name` and `process`. */}}
{{- define "docflow.pod" -}}
{{- $root := .root }}
{{- $name := .name }}
{{- $kind := .process.kind }}
{{- $values := .process.values }}
{{- $full := include "docflow.name" $root }}
{{- $isGateway := eq $name "gateway" }}
metadata:
  labels:
    {{- include "docflow.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ $name }}
    {{- with $values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    checksum/variables: {{ toJson (list .process.variables .process.secrets $root.Values.files) | sha256sum }}
    {{- with $values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ $full }}-{{ $name }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with $root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- if $kind.hook }}
  restartPolicy: Never
  {{- else }}
  terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
  topologySpreadConstraints:
    {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "docflow.selector" $root | nindent 10 }}
          app.kubernetes.io/component: {{ $name }}
    {{- end }}
  {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations: {{ toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: docflow
      image: {{ include "docflow.image" (dict "root" $root "kind" $kind) | quote }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args:
        {{- toYaml $kind.command | nindent 8 }}
        {{- if and $kind.bridge $values.bridge }}
        - --with-bridge
        {{- end }}
        {{- if $isGateway }}
        - --port
        - "8000"
        {{- else if not $kind.hook }}
        - --health-port
        - "8080"
        {{- end }}
        {{- if not $kind.hook }}
        - --metrics-port
        - "9090"
        {{- end }}
      env:
        {{- range $variable, $value := .process.variables }}
        - name: {{ $variable }}
          value: {{ $value | quote }}
        {{- end }}
        {{- if not $kind.hook }}
        - name: DOCFLOW_SCRATCH
          value: /scratch
        {{- end }}
        {{- if .process.secret }}
        - name: DOCFLOW_SECRETS_DIR
          value: /run/secrets/docflow
        {{- end }}
        {{- with $values.env }}{{ toYaml . | nindent 8 }}{{ end }}
      {{- if not $kind.hook }}
      ports:
        - name: {{ ternary "http" "health" $isGateway }}
          containerPort: {{ ternary 8000 8080 $isGateway }}
        - name: metrics
          containerPort: 9090
      readinessProbe:
        httpGet:
          path: /health/ready
          port: {{ ternary "http" "health" $isGateway }}
        periodSeconds: 5
        timeoutSeconds: 3
      livenessProbe:
        httpGet:
          path: /health/live
          port: {{ ternary "http" "health" $isGateway }}
        periodSeconds: 10
        timeoutSeconds: 5
      {{- end }}
      {{- if $isGateway }}
      lifecycle:
        preStop:
          # Until no request is sent here any more.
          sleep:
            seconds: 5
      {{- end }}
      {{- $computed := dict "requests" (dict "cpu" $values.cpu "memory" (printf "%dMi" (int .process.request))) "limits" (dict "memory" (printf "%dMi" (int .process.limit))) }}
      resources: {{ toYaml (mergeOverwrite $computed (deepCopy $values.resources)) | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - name: tmp
          mountPath: /tmp
        {{- if not $kind.hook }}
        - name: scratch
          mountPath: /scratch
        {{- end }}
        {{- if .process.secret }}
        - name: secrets
          mountPath: /run/secrets/docflow
          readOnly: true
        {{- end }}
        {{- if $values.secretFiles }}
        - name: secret-files
          mountPath: /run/secrets/files
          readOnly: true
        {{- end }}
        {{- if $root.Values.files }}
        - name: files
          mountPath: /etc/docflow
          readOnly: true
        {{- end }}
  volumes:
    - name: tmp
      emptyDir: {}
    {{- if not $kind.hook }}
    - name: scratch
      emptyDir:
        sizeLimit: {{ $values.scratch }}
    {{- end }}
    {{- if .process.secret }}
    - name: secrets
      secret:
        secretName: {{ .process.secret }}
        defaultMode: 0440
    {{- end }}
    {{- if $values.secretFiles }}
    - name: secret-files
      secret:
        secretName: {{ $values.secretFiles }}
        defaultMode: 0440
    {{- end }}
    {{- if $root.Values.files }}
    - name: files
      configMap:
        name: {{ $full }}-files{{ if $kind.hook }}-before{{ end }}
    {{- end }}
{{- end }}
