import type { Router } from '@koa/router'
import { AnthropicMessagesBody } from '#api/contract/contract.ts'
import { answerWithMemory } from '#api/proxy/answer-with-memory.ts'
import { dialects } from '#api/proxy/dialects/index.ts'
import type { Backend } from '#shared/backend.ts'

/** Anthropic's format. */
export function messages(router: Router, backend: Backend): void {
  const endpoint = {
    dialect: dialects.anthropic,
    shape: AnthropicMessagesBody,
    route: 'POST /v1/messages',
    pathOf: () => '/v1/messages',
  }
  router.post('/v1/messages', ctx => answerWithMemory(ctx, backend, endpoint))
}
