/** The service and the key that a snippet names; no slash at the end of the address. */
export type Place = { url: string; key: string }

/** A file, or a piece of a program, to copy. */
export type Snippet = { file: string; text: string }

export type ConnectedClient = {
  name: string
  kind: 'Your own program' | 'Coding agents' | 'Chat and editors'
  snippets: (place: Place) => Snippet[]
  notes: readonly string[]
}
