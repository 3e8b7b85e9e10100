import { systemRoles } from '#api/proxy/dialects/conversation.ts'
import type { ProxyRequest } from '#api/proxy/dialects/dialect.ts'
import type { RequestFormat } from '#api/proxy/dialects/format.ts'
import type { MessageReader } from '#api/proxy/dialects/message-reader.ts'
import type { RequestMembers } from '#api/proxy/dialects/request-members.ts'
import { systemTurns } from '#api/proxy/dialects/system-prompt.ts'
import { textParts } from '#shared/domain/message-content.ts'
import { hasAsidePrompt, isAsideCall } from '#shared/domain/turn/marks.ts'

/** Whether a program makes the call for itself, by the prompts of the request: see `ProxyRequest.aside`. */
export function asideKind(
  {
    body,
    format,
    members,
  }: { body: Buffer; format: Pick<RequestFormat, 'modelRole'>; members: RequestMembers },
  { texts: textsOf }: MessageReader,
): ProxyRequest['aside'] {
  const { entries, system, maxTokens } = members
  const begin = entries.findLastIndex(({ role }) => role === format.modelRole) + 1
  const systemTexts = [
    ...systemTurns(body, system).flatMap(({ content }) => textParts(content)),
    ...entries.slice(0, 2).flatMap(entry => (systemRoles.has(entry.role) ? textsOf(entry) : [])),
  ]
  const isAside = isAsideCall({
    maxTokens,
    systemTexts,
    userTexts: entries.slice(begin).flatMap(entry => (entry.role === 'user' ? textsOf(entry) : [])),
  })
  if (!isAside) return undefined
  return begin === 0 || hasAsidePrompt('system', systemTexts) ? 'apart' : 'inside'
}
