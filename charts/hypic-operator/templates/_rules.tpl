{{/* All that the operator may do; cluster-wide or in each watched namespace. */}}
{{- define "hypic-operator.rules" -}}
- apiGroups: [serving.hypic.dev]
  resources: [hypicclusters]
  verbs: [get, list, watch]
- apiGroups: [serving.hypic.dev]
  resources: [hypicroles]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [serving.hypic.dev]
  resources: [hypicclusters/status, hypicroles/status]
  verbs: [patch]
# Owner references block deletion, which some clusters allow only to those who may finalize the owner.
- apiGroups: [serving.hypic.dev]
  resources: [hypicclusters/finalizers]
  verbs: [update]
- apiGroups: [apps]
  resources: [statefulsets, deployments]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [services, serviceaccounts]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies, ingresses]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [get, list, watch, create, patch, delete]
# Used where the cluster has these kinds.
- apiGroups: [gateway.networking.k8s.io]
  resources: [httproutes]
  verbs: [get, list, create, patch, delete]
- apiGroups: [monitoring.coreos.com]
  resources: [podmonitors]
  verbs: [get, list, create, patch, delete]
# Each router gets a role to watch the pods of its namespace; nobody can grant what he does not hold.
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, list, watch, create, patch, delete]
# Patched with the annotation that takes an engine out of the routers' choice before it goes.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, patch]
# Listed for the reasons why pods cannot be made, such as a quota.
- apiGroups: [""]
  resources: [events]
  verbs: [create, list]
# An operator of single namespaces holds a Lease in each; one of the whole cluster leaves those alone.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  {{- if .Values.watchNamespaces }}
  verbs: [get, create, patch]
  {{- else }}
  resourceNames: [hypic-operator-scope]
  verbs: [get]
  {{- end }}
{{- end -}}
