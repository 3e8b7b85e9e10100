import type { AnswerOf } from '#api/client/client.ts'

export type ReviewItem = AnswerOf<'GET /v1/orgs/:orgId/memories/review'>['review'][number]
