import type { Router } from '@koa/router'
import { ChatBody } from '#api/contract/contract.ts'
import { answerWithMemory } from '#api/proxy/answer-with-memory.ts'
import { dialects } from '#api/proxy/dialects/index.ts'
import type { Backend } from '#shared/backend.ts'

/** OpenAI's format, with models of every provider. */
export function chatCompletions(router: Router, backend: Backend): void {
  const endpoint = {
    dialect: dialects.openai,
    shape: ChatBody,
    route: 'POST /v1/chat/completions',
    pathOf: () => '/chat/completions',
  }
  router.post('/v1/chat/completions', ctx => answerWithMemory(ctx, backend, endpoint))
}
