/** An account's decisions about storing exchanges, besides the switches of a request. */
export type StoragePolicy = {
  /** Model calls are stored as they were sent, with the marks of programs. */
  verbatim: boolean
  /** An answer is stored only where the input that it answers is. */
  responseWithInput: boolean
  /** A session id names the conversation alone: what is said lives in the core. */
  coreSessions: boolean
  /** A question to memory that has no answer is told so, in place of silence. */
  tellAbsence: boolean
  /** Files that bring memories are kept themselves. */
  keepFiles: boolean
}

type Change<Policy> = { [Name in keyof Policy]?: Policy[Name] | undefined }

export type StoragePolicyChange = Change<StoragePolicy>

/** How model calls of an account are traced. */
export type TracePolicy = {
  /** `off`: nothing; `ids`: traces are shown without texts; `texts`: with those that the vault still has. */
  mode: 'off' | 'ids' | 'texts'
  /** Days that a trace is kept, 1 to 365. */
  days: number
}

export type TracePolicyChange = Change<TracePolicy>
