import { join } from 'node:path'
import type { ClientRights, Program, ProgramFile, Value } from '#api/client/programs/programs.ts'
import type { FileFormat, Path } from '#scripts/clients/connect/formats/file-format.ts'

/** Folders, of which the first counts whose variable is set: `~/a`, `$VARIABLE/a`, or `.` where the command runs. */
export type Folders = readonly string[]

/** A configuration file, on the disk. */
export type ClientFile = ProgramFile & {
  /** Default: those of the client. */
  folders?: Folders
  /** The first that is there counts; where none is, the last is made. */
  names: string[]
  /** A command of the client that writes its tools. */
  shell?: string
  /** The settings to call the service with; `beside`: the tools are at `/mcp` of `url`. */
  proof: { url?: string; key?: string; tools?: string }
}

/** What a client starts when something happens in it. */
export type ClientHooks = {
  /** Where it is not the folder of the client. */
  folder?: string
  file: string
  events: { start: string; prompt: string; ends: string[] }
  /** What stands at each event, with `{command}`; without it `file` is a plug-in. */
  entry?: Value
  /** The version of its form that the file has to name. */
  version?: number
  notes?: string[]
}

/** A program that can be connected, as the table of programs has it. */
export type Client = Omit<Program, 'files'> & {
  /** What the command calls it; default: its id. */
  commandName?: string
  /** Its own folders, for each system where they differ; a system that is missing is as Linux. */
  folders: Folders | { linux: Folders; darwin: Folders; win32: Folders }
  files: ClientFile[]
  hooks?: ClientHooks
  /** The file that says whether it is signed in with ChatGPT, so that its model calls reach no other provider. */
  chatGptLogin?: { file: string; note: string }
  /** Which version was seen to work; without it a client has no row in the guide for agents. */
  seen?: string
}

/** Where a client keeps its configuration. */
export type Place = {
  env: Record<string, string | undefined>
  home: string
  platform: NodeJS.Platform
  /** Stands in for the client's own folder. */
  configDir: string | undefined
  /** Where the command runs. */
  cwd: string
}

/** The service and the key that a client uses, and what the key may do; no slash at the end. */
export type Vault = { baseUrl: string; key: string; rights: ClientRights }

/** How a program gets memory: its model calls go through the service, its hooks call it, or it has tools alone. */
export type Way = 'models' | 'plugin' | 'tools'

/** A value that a file gets, or how it follows from the present one. */
export type Setting = {
  at: Path
  value: Value | ((present: unknown) => Value)
  /** What is a person's own in a value that they have changed since; undefined where nothing is. */
  ownPartOf?: (present: unknown) => Value | undefined
  /** The way of memory that it belongs to; the others add the tools of memory, and belong to all. */
  way?: Exclude<Way, 'tools'>
}

export type ConfigFile = {
  path: string
  format: FileFormat
  /** All that it may get. */
  settings: Setting[]
  /** Those of them that the chosen way of memory needs; all, when missing. */
  chosen?: Setting[]
}

/** The path of the first folder whose variable is set. */
export function findFolder(folders: Folders, { env, home, cwd }: Place): string {
  const known: Place['env'] = { '~': home, '.': cwd }
  for (const folder of folders) {
    const [start = '', ...names] = folder.split('/')
    const found = known[start] ?? env[start.slice(1)]
    if (found !== undefined) return join(found, ...names)
  }
  throw new Error(`No folder of ${folders.join(', ')} is known`)
}
