import type { EndpointResponse } from '#api/client/client.ts'

export type ReviewItem = EndpointResponse<'GET /v1/orgs/:orgId/memories/review'>['review'][number]

export type ReviewAction = 'approve' | 'dismiss' | 'reject'
