import { readContent } from '#api/proxy/dialects/content.ts'
import {
  beginningCharacters,
  type LongContent,
  type LongContentReading,
} from '#api/proxy/dialects/long-content.ts'
import { serveThread } from '#shared/core/thread.ts'
import { textParts } from '#shared/domain/message-content.ts'
import { readMessageContent, sentMessageContent } from '#shared/domain/turn/conversation.ts'

/** The thread of `long-content.ts`. */
serveThread(({ role, bytes, isVerbatim }: LongContent): LongContentReading => {
  const content = readContent(Buffer.from(bytes.buffer), 0)
  const beginnings = textParts(content).map(text => text.slice(0, beginningCharacters))
  const sent = isVerbatim ? { sent: sentMessageContent(content) } : {}
  return { ...readMessageContent(role, content), beginnings, ...sent }
})
