import type { Router } from '@koa/router'
import { answerWithMemory } from '#api/proxy/answer-with-memory.ts'
import { dialects } from '#api/proxy/dialects/index.ts'
import type { ProxyEndpoint } from '#api/proxy/proxy-call.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'

/** OpenAI's Responses, with models of the providers that serve them. */
export function responses(router: Router, backend: ApiBackend): void {
  const endpoint: ProxyEndpoint = {
    dialect: dialects.responses,
    route: 'POST /v1/responses',
    providerPath: () => '/responses',
  }
  router.post('/v1/responses', ctx => answerWithMemory(ctx, backend, endpoint))
}
