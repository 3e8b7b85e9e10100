/** What a known program writes into the messages of a model call beside a person's words. */
export type KnownMark = {
  program: string
  /** A file of the program's source, or the transcripts of one that is closed. Read on 2026-11-25. */
  source: string
  /** The elements count only in a message that holds this as well: their names are a person's, too. */
  beside?: string
  /** Whose messages it stands in: the user's, when missing. */
  of?: 'model'
  /** Elements that are left out: what follows `<` in them, which is more than the name where others use it. */
  elements?: readonly string[]
  /** Elements around the user's own words: only their tags are left out. */
  around?: readonly string[]
  /** What is left out from its first line to its last. */
  spans?: readonly KnownSpan[]
  /** Messages that begin so. */
  texts?: readonly KnownText[]
}

export type KnownSpan = { name: string; begin: string; end: string }

export type KnownText = {
  name: string
  /** How the message begins, without leading white space. */
  beginning: string
  /** Stands in its first line as well. */
  also?: string
  /**
   * What the user's words follow: where it does not stand in the message, nothing is left out. Without it, the whole
   * message is the program's.
   */
  wordsAfter?: string
}
