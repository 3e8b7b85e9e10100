import type { Router } from '@koa/router'
import { answerWithMemory } from '#api/proxy/answer-with-memory.ts'
import { dialects } from '#api/proxy/dialects/index.ts'
import type { ProxyEndpoint } from '#api/proxy/proxy-call.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'

/** Anthropic's format. */
export function messages(router: Router, backend: ApiBackend): void {
  const endpoint: ProxyEndpoint = {
    dialect: dialects.anthropic,
    route: 'POST /v1/messages',
    providerPath: () => '/v1/messages',
  }
  router.post('/v1/messages', ctx => answerWithMemory(ctx, backend, endpoint))
}
