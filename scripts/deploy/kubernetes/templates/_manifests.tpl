{{- /* Each template changes one object of the manifests in place, by the values, and prints nothing. */ -}}

{{- define "memory-vault.ConfigMap" -}}
  {{- range $name, $value := .root.Values.settings -}}
    {{- $_ := set $.object.data $name (toString $value) -}}
  {{- end -}}
{{- end -}}

{{- /* A pod that runs the image: its image, secrets, and what is merged into every pod and container. */ -}}
{{- define "memory-vault.pod" -}}
  {{- $values := .root.Values -}}
  {{- $container := index .pod.containers 0 -}}
  {{- $image := printf "%s:%s" $values.image.repository ($values.image.tag | default .root.Chart.AppVersion) -}}
  {{- if $values.image.digest -}}
    {{- $image = printf "%s@%s" $values.image.repository $values.image.digest -}}
  {{- end -}}
  {{- $_ := set $container "image" $image -}}
  {{- range $container.envFrom -}}
    {{- if .secretRef -}}{{- $_ := set .secretRef "name" $values.secrets.name -}}{{- end -}}
  {{- end -}}
  {{- $env := $container.env | default list -}}
  {{- range $name, $reference := $values.secrets.keys -}}
    {{- $env = append $env (dict "name" $name "valueFrom" (dict "secretKeyRef" $reference)) -}}
  {{- end -}}
  {{- if $env -}}{{- $_ := set $container "env" $env -}}{{- end -}}
  {{- $_ := mergeOverwrite $container (deepCopy $values.container) -}}
  {{- $_ := mergeOverwrite .pod (deepCopy $values.pod) -}}
{{- end -}}

{{- define "memory-vault.Job" -}}
  {{- /* A job cannot be changed, so that each revision of the installation has its own. */ -}}
  {{- $_ := set .object.metadata "name" (printf "%s-%d" .object.metadata.name .root.Release.Revision) -}}
  {{- include "memory-vault.pod" (dict "pod" .object.spec.template.spec "root" .root) -}}
{{- end -}}

{{- define "memory-vault.Deployment" -}}
  {{- $name := .object.spec.selector.matchLabels.process -}}
  {{- $own := index .root.Values $name -}}
  {{- if and .root.Values.autoscaling.enabled (hasKey $own "maxReplicas") -}}
    {{- /* Who scales a deployment owns its count. */ -}}
    {{- $_ := unset .object.spec "replicas" -}}
  {{- else -}}
    {{- $_ := set .object.spec "replicas" $own.replicas -}}
  {{- end -}}
  {{- $container := index .object.spec.template.spec.containers 0 -}}
  {{- $_ := mergeOverwrite $container.resources (deepCopy $own.resources) -}}
  {{- include "memory-vault.pod" (dict "pod" .object.spec.template.spec "root" .root) -}}
  {{- /* Changed settings make new pods. */ -}}
  {{- $digest := .root.Values.settings | toJson | sha256sum -}}
  {{- $_ := set .object.spec.template.metadata "annotations" (dict "checksum/settings" $digest) -}}
{{- end -}}

{{- define "memory-vault.Service" -}}
  {{- with .root.Values.service -}}
    {{- if ne .type "ClusterIP" -}}{{- $_ := set $.object.spec "type" .type -}}{{- end -}}
    {{- if .annotations -}}{{- $_ := set $.object.metadata "annotations" .annotations -}}{{- end -}}
  {{- end -}}
{{- end -}}

{{- define "memory-vault.PodDisruptionBudget" -}}
  {{- $_ := set .object.spec "minAvailable" .root.Values.disruptionBudget.minAvailable -}}
{{- end -}}

{{- define "memory-vault.Ingress" -}}
  {{- with .root.Values.ingress -}}
    {{- $_ := set (index $.object.spec.rules 0) "host" .host -}}
    {{- $_ := set $.object.spec "tls" (list (dict "hosts" (list .host) "secretName" .tlsSecret)) -}}
    {{- if .className -}}{{- $_ := set $.object.spec "ingressClassName" .className -}}{{- end -}}
    {{- $_ := mergeOverwrite $.object.metadata.annotations (deepCopy .annotations) -}}
  {{- end -}}
{{- end -}}

{{- define "memory-vault.NetworkPolicy" -}}
  {{- with .root.Values.networkPolicy -}}
    {{- if .ingress -}}{{- $_ := set $.object.spec "ingress" .ingress -}}{{- end -}}
    {{- if .egress -}}{{- $_ := set $.object.spec "egress" .egress -}}{{- end -}}
  {{- end -}}
{{- end -}}

{{- define "memory-vault.HorizontalPodAutoscaler" -}}
  {{- $_ := set .object.spec "minReplicas" .root.Values.web.replicas -}}
  {{- $_ := set .object.spec "maxReplicas" .root.Values.web.maxReplicas -}}
{{- end -}}

{{- define "memory-vault.ScaledObject" -}}
  {{- $own := index .root.Values (trimPrefix "memory-vault-" .object.metadata.name) -}}
  {{- $_ := set .object.spec "minReplicaCount" $own.replicas -}}
  {{- $_ := set .object.spec "maxReplicaCount" $own.maxReplicas -}}
  {{- $_ := set (index .object.spec.triggers 0).metadata "serverAddress" .root.Values.autoscaling.prometheus -}}
{{- end -}}

{{- define "memory-vault.PodMonitor" -}}
  {{- range .object.spec.podMetricsEndpoints -}}
    {{- $_ := set .authorization.credentials "name" $.root.Values.monitoring.secret -}}
  {{- end -}}
  {{- include "memory-vault.PrometheusRule" . -}}
{{- end -}}

{{- define "memory-vault.PrometheusRule" -}}
  {{- if .root.Values.monitoring.labels -}}
    {{- $_ := set .object.metadata "labels" .root.Values.monitoring.labels -}}
  {{- end -}}
{{- end -}}

{{- define "memory-vault.PersistentVolumeClaim" -}}
  {{- $_ := set .object.spec.resources.requests "storage" .root.Values.backup.storage -}}
  {{- with .root.Values.backup.storageClass -}}
    {{- $_ := set $.object.spec "storageClassName" . -}}
  {{- end -}}
{{- end -}}

{{- define "memory-vault.CronJob" -}}
  {{- $_ := set .object.spec "schedule" .root.Values.backup.schedule -}}
  {{- $pod := .object.spec.jobTemplate.spec.template.spec -}}
  {{- $_ := mergeOverwrite $pod (deepCopy .root.Values.pod) -}}
  {{- range concat $pod.initContainers $pod.containers -}}
    {{- range .env -}}
      {{- $own := index $.root.Values.secrets.keys .name -}}
      {{- $ours := dict "name" $.root.Values.secrets.name "key" .name -}}
      {{- $_ := set .valueFrom "secretKeyRef" ($own | default $ours) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
