import type { Insertion } from '#api/proxy/json/splice.ts'

/** How one family writes a request. */
export type RequestFormat = {
  /** The member that holds the conversation, and the one that holds what a message says. */
  messagesField: 'messages' | 'contents'
  contentField: 'content' | 'parts'
  /** Whether the provider takes one message where an array of them is meant. */
  singleMessageAllowed: boolean
  modelRole: string
  /** Whose a message without a role is. */
  defaultRole: string | undefined
  /** Whether model and stream are members of the body; they are in the path otherwise. */
  hasModelInBody: boolean
  /** Whether a `cache_control` beside the messages marks the last part of them all. */
  hasRequestCacheControl: boolean
  /** Whether the user says something in this message: text or media, not only results of tools. */
  isUserMessage(body: Buffer, entry: RawMessage): boolean
  /** Whether this message of the model is an answer that was interrupted, and is to be gone on with. */
  isPausedReply?(body: Buffer, entry: RawMessage): boolean
  /**
   * How many parts of a message, which `isUser` accepted, the block comes after.
   *
   * @param marked whether the last of them is, by a mark that stands beside the messages
   */
  findBlockIndex(body: Buffer, entry: RawMessage, marked: boolean): number
  /** Puts the block there. */
  insertBlock(body: Buffer, entry: RawMessage, block: ContextBlock): Insertion[]
}

/** A message where it stands in the body. */
export type RawMessage = {
  start: number
  role: string | undefined
  /** Where its content (Gemini: its parts) begins; undefined when it has none. */
  content: number | undefined
  memory: boolean | undefined
  name: string | undefined
}

/** What memory adds to a request. */
export type ContextBlock = {
  context: string
  /** How many parts of the user's message it comes after. */
  blockIndex: number
  /** JSON of a mark for caching that is set on the last part of that message. */
  mark?: string
}
