import data from './programs.json' with { type: 'json' }

/** What the key of a program may do: `memory` for a program of one person, `users` for one that names its users. */
export type ClientRights = 'memory' | 'users'

/** A value of a configuration file. */
export type Value = string | number | boolean | Value[] | { [name: string]: Value }

/** Values by the names that lead to them, with dots between: `mcpServers.memory`. */
export type Settings = Record<string, Value>

/** A configuration file, with what connects the program. `{url}` and `{key}` stand for the service and the key. */
export type ProgramFile = {
  /** How people are told of it. */
  shown: string
  format: 'json' | 'toml' | 'env'
  /** They send its model calls through the service. */
  models?: Settings
  /** They name the user of each call, for a key that needs it. */
  users?: Settings
  /** They give it the tools of memory. */
  tools?: Settings
  /** Settings that have parts of a person too: the text between the parts, or `json` for a list as JSON. */
  shared?: Record<string, string>
}

/** A piece that people paste: JSON, or lines; it and its lines may be for keys that name users alone. */
export type PastedText = {
  file: string
  only?: 'users'
  lines?: (string | { users: string })[]
  json?: object
}

/** A sentence for everybody, or those of the command and of the console, or one for keys that name users. */
type Note = string | { command?: string; console?: string; users?: string }

/** The groups of the console's page, in their order. */
export const kinds = ['Programs', 'SDKs by base URL', 'Clients', 'Frameworks', 'MCP'] as const

/** A program, library or adapter; what only `npm run connect` reads of it is described there. */
export type Program = {
  name: string
  /** What has no group is not in the console. */
  kind?: (typeof kinds)[number]
  /** Several people use it: `named` where it sends the user of each call, `unnamed` where it sends none. */
  users?: 'named' | 'unnamed'
  files?: ProgramFile[]
  snippets?: PastedText[]
  /** What is left to know or do; one that several have stands by its name. */
  notes: Note[]
}

const table = data as { notes: Record<string, unknown>; programs: Record<string, unknown> }
const sharedNotes = table.notes as Record<string, Note>

/** All of them, by the name in the address of the console's page. */
export const programs = table.programs as Record<string, Program>

/** The notes of a program for a reader with a key. */
export const notesOf = (
  { notes }: Program,
  reader: 'command' | 'console',
  rights: ClientRights,
): string[] =>
  notes
    .map(note => (typeof note === 'string' ? (sharedNotes[note] ?? note) : note))
    .flatMap(note => {
      if (typeof note === 'string') return note
      return note[reader] ?? (rights === 'users' ? note.users : undefined) ?? []
    })
