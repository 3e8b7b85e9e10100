import type { Context } from 'koa'
import { releaseBody } from '#api/edge/body-budget.ts'
import type { ProxyCall } from '#api/proxy/proxy-call.ts'
import type { OpenExchange } from '#shared/vault/ingest/open-exchanges.ts'

/** While the provider works only the bytes of a large request are held, and what is stored of it. */
export function releaseTexts(
  ctx: Context,
  { request }: ProxyCall,
  exchange: OpenExchange | undefined,
): void {
  request.forgetTexts()
  releaseBody(
    ctx,
    exchange?.userTurns.reduce((sum, { text }) => sum + text.length, 0),
  )
}
