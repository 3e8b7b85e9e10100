import type { ContentPart } from '#api/proxy/dialects/content.ts'
import type { kindAt } from '#shared/core/json-walk.ts'
import type { Shape } from '#shared/core/shape.ts'

/** Where one API format has what memory reads of a request, and where it takes the context block. */
export type RequestFormat = {
  /** What the contract requires of a body. */
  bodyShape: Shape<unknown>
  /** The member of the body that holds the conversation, and that of a message which holds its content. */
  messages: 'messages' | 'contents' | 'input' | undefined
  content: 'content' | 'parts'
  /** What the provider accepts in place of an array of messages: one of them, or the text of one. */
  singleMessage?: 'object' | 'string'
  /** Whether `model` is a member of the body; otherwise it is in the path. */
  hasModelInBody: boolean
  /** Whether a member with the name of a switch but another type is the provider's. */
  hasOddSwitches?: boolean
  modelRole: string
  /** The role of a message that has none. */
  defaultRole?: string
  /** The role of an element that is no message (a call, a result, reasoning), by its `type`. */
  roleOfItem?(type: string | undefined): string
  /** Whether this content of the model, after the user's turn, is a paused reply that the provider continues. */
  isPausedReply?(body: Buffer, content: number | undefined): boolean
  /** Whether a part of a message holds the result of a tool, in formats that send these in messages of the user. */
  isToolResult?(body: Buffer, part: ContentPart): boolean
  /** Whether parts, and the body for the last part of the last message, may have a `cache_control`. */
  cacheControl?: 'parts' | 'parts and body'
  /** The context block as JSON, and whether it is a message of its own or a part of the user's. */
  block: { as: 'message' | 'part'; toJson(context: string): string }
  /** What makes an element of a list of a value that stands in place of the list, by the kind of the value. */
  wrappers: { [Kind in ReturnType<typeof kindAt>]?: [before: string, after: string] }
}
