import { anthropicReply, anthropicRequest } from '#api/proxy/dialects/anthropic.ts'
import type { Dialect } from '#api/proxy/dialects/dialect.ts'
import { googleReply, googleRequest } from '#api/proxy/dialects/google.ts'
import { memberNames } from '#api/proxy/dialects/members.ts'
import { openaiReply, openaiRequest } from '#api/proxy/dialects/openai.ts'
import type { RequestFormat } from '#api/proxy/dialects/request-format.ts'
import { createReplyParser, type ReplyFormat } from '#api/proxy/dialects/reply.ts'
import { parseSteps, type ProxyRequest } from '#api/proxy/dialects/request.ts'
import { responsesReply, responsesRequest } from '#api/proxy/dialects/responses.ts'
import { runAtOnce, runInSlices, type Steps } from '#shared/core/event-loop.ts'
import type { ApiFormat } from '#shared/core/provider-registry.ts'

function createDialect(apiFormat: ApiFormat, request: RequestFormat, reply: ReplyFormat): Dialect {
  const names = memberNames(request)
  const parse = (body: Buffer): Steps<ProxyRequest> => parseSteps(body, request, names)
  return {
    apiFormat,
    bodyShape: request.bodyShape,
    parseRequest: body => runAtOnce(parse(body)),
    parseInSlices: body => runInSlices(parse(body)),
    createReplyParser: answer => createReplyParser(answer, reply),
  }
}

/** The four API formats; none is translated into another. */
export const dialects: Record<ApiFormat, Dialect> = {
  openai: createDialect('openai', openaiRequest, openaiReply),
  anthropic: createDialect('anthropic', anthropicRequest, anthropicReply),
  google: createDialect('google', googleRequest, googleReply),
  responses: createDialect('responses', responsesRequest, responsesReply),
}

/**
 * Requests for endpoints without memory. Clients set their switches for all calls: here they are removed and have no
 * effect. A member with the name of a switch but another type is the provider's.
 */
export const passThrough: Pick<Dialect, 'parseRequest'> = createDialect(
  'openai',
  { ...openaiRequest, messages: undefined, hasOddSwitches: true },
  openaiReply,
)
