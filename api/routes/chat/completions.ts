import type { Router } from '@koa/router'
import { answerWithMemory } from '#api/proxy/answer-with-memory.ts'
import { dialects } from '#api/proxy/dialects/index.ts'
import type { ProxyEndpoint } from '#api/proxy/proxy-call.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'

/** OpenAI's format, with models of every provider. */
export function chatCompletions(router: Router, backend: ApiBackend): void {
  const endpoint: ProxyEndpoint = {
    dialect: dialects.openai,
    route: 'POST /v1/chat/completions',
    providerPath: () => '/chat/completions',
  }
  router.post('/v1/chat/completions', ctx => answerWithMemory(ctx, backend, endpoint))
}
