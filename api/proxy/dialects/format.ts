import type { ReadTypedField } from '#api/proxy/dialects/typed-fields.ts'
import type { Insertion } from '#api/proxy/json/splice.ts'

/** How one API format writes a request. */
export type RequestFormat = {
  /** Reads the members that the contract's shape of this format constrains. */
  readTypedField: ReadTypedField
  /** The member of the body that holds the conversation, and that of a message which holds its content. */
  messagesField: 'messages' | 'contents' | 'input'
  contentField: 'content' | 'parts'
  /** Whether the provider accepts one message in place of an array. */
  singleMessageAllowed: boolean
  /** Whether it accepts a text in place of an array, as one message of the user. */
  textAllowed?: boolean
  modelRole: string
  /** The role of a message that has none. */
  defaultRole: string | undefined
  /** The role of an element that is no message (a call, a result, reasoning), by its `type`. */
  roleOfItem?(type: string | undefined): string
  /** Whether `model` and `stream` are members of the body; otherwise they are in the path. */
  hasModelInBody: boolean
  /** Whether a `cache_control` of the body applies to the last part of the last message. */
  hasRequestCacheControl: boolean
  /** Whether the message holds text or media of the user, not only tool results. */
  isUserMessage(body: Buffer, entry: RawMessage): boolean
  /** Whether a message of the user holds results of tools; undefined in formats that send these apart. */
  hasToolResult?(body: Buffer, entry: RawMessage): boolean
  /** Whether this message of the model is a paused reply that the provider is to continue. */
  isPausedReply?(body: Buffer, entry: RawMessage): boolean
  /**
   * How many parts of a message, which `isUserMessage` accepted, precede the block.
   *
   * @param hasOuterCacheControl whether a `cache_control` of the body applies to its last part
   */
  findBlockIndex(body: Buffer, entry: RawMessage, hasOuterCacheControl: boolean): number
  /** Whether a block after `blockIndex` parts stands behind all of the message. */
  isBlockLast(body: Buffer, entry: RawMessage, blockIndex: number): boolean
  /** The insertions that put the block there. */
  insertBlock(body: Buffer, entry: RawMessage, block: ContextBlock): Insertion[]
}

/** A message by its offsets in the body. */
export type RawMessage = {
  start: number
  role: string | undefined
  /**
   * Offset of its content (Gemini: its parts); undefined when it has none. A text in place of the array of
   * messages is its own content.
   */
  content: number | undefined
  memory: boolean | undefined
  name: string | undefined
}

/** The recalled memories that are added to a request. */
export type ContextBlock = {
  context: string
  /** How many parts of the user's message precede it. */
  blockIndex: number
  /** JSON of a `cache_control` to set on the last part of that message. */
  cacheControl?: string | undefined
}
