import type { Insert } from '#api/proxy/json/splice.ts'

/** How one family writes a request. */
export type Format = {
  /** The member that holds the conversation, and the one that holds what a message says. */
  messages: 'messages' | 'contents'
  content: 'content' | 'parts'
  /** Whether the provider takes one message where an array of them is meant. */
  lone: boolean
  modelRole: string
  /** Whose a message without a role is. */
  defaultRole: string | undefined
  /** Whether model and stream are members of the body; they are in the path otherwise. */
  namesModel: boolean
  /** Whether a `cache_control` beside the messages marks the last part of them all. */
  marksAll: boolean
  /** Whether the user says something in this message: text or media, not only results of tools. */
  isUser(body: Buffer, entry: Entry): boolean
  /** Whether this message of the model is an answer that was interrupted, and is to be gone on with. */
  isPaused?(body: Buffer, entry: Entry): boolean
  /**
   * How many parts of a message, which `isUser` accepted, the block comes after.
   *
   * @param marked whether the last of them is, by a mark that stands beside the messages
   */
  placeIn(body: Buffer, entry: Entry, marked: boolean): number
  /** Puts the block there. */
  place(body: Buffer, entry: Entry, block: Block): Insert[]
}

/** A message where it stands in the body. */
export type Entry = {
  start: number
  role: string | undefined
  /** Where its content (Gemini: its parts) begins; undefined when it has none. */
  content: number | undefined
  memory: boolean | undefined
  name: string | undefined
}

/** What memory adds to a request. */
export type Block = {
  context: string
  /** How many parts of the user's message it comes after. */
  place: number
  /** JSON of a mark for caching that is set on the last part of that message. */
  mark?: string
}
