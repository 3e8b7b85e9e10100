import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Value } from '#api/client/programs/programs.ts'
import {
  findFolder,
  type ClientHooks,
  type ConfigFile,
  type Place,
  type Setting,
  type Vault,
} from '#scripts/clients/connect/client.ts'
import { clients, clientFolder } from '#scripts/clients/connect/clients.ts'
import { fill } from '#scripts/clients/connect/fill.ts'
import { jsonc } from '#scripts/clients/connect/formats/jsonc.ts'
import { whole } from '#scripts/clients/connect/formats/whole.ts'
import { sharedSetting, type SharedValue } from '#scripts/clients/connect/shared-values.ts'
import { connectionsFolder } from '#scripts/hooks/files.ts'

const root = new URL('../../hooks/', import.meta.url)
const pathTo = (name: string): string => fileURLToPath(new URL(name, root))

/** How a program starts the hooks, as words. */
const wordsOf = (client: string): string[] => [process.execPath, pathTo('main.ts'), 'run', client]

const quoted = (words: readonly string[]): string =>
  words.map(word => (/^[\w/.:+-]+$/.test(word) ? word : `"${word}"`)).join(' ')

/** How a program's shell starts its hooks. */
export const hookCommand = (client: string): string => quoted(wordsOf(client))

export const hookNotes = (client: string): string[] => [
  ...(clients[client]!.hooks!.notes ?? []),
  `What the hooks have recalled and stored: ${quoted([process.execPath, pathTo('main.ts')])} status`,
]

/** The files of a program's hooks: the service and key that they use, the hooks, and a skill that says when to use its tools. */
export function hookFiles(name: string, { baseUrl, key }: Vault, place: Place): ConfigFile[] {
  const client = clients[name]!
  const hooks = client.hooks!
  const folder =
    hooks.folder === undefined ? clientFolder(client, place) : findFolder([hooks.folder], place)
  const connection: ConfigFile = {
    path: join(connectionsFolder(place.env, place.home), `${name}.json`),
    format: jsonc,
    settings: [
      { at: ['base_url'], value: baseUrl, ownPartOf: nothing },
      { at: ['key'], value: key, ownPartOf: nothing },
    ],
  }
  const started: ConfigFile = {
    path: join(folder, hooks.file),
    ...(hooks.entry === undefined
      ? // A plug-in of ours that was changed still starts the hooks.
        { format: whole, settings: [{ at: ['content'], value: pluginText(), ownPartOf: nothing }] }
      : { format: jsonc, settings: hookSettings(hooks, hooks.entry, hookCommand(name)) }),
  }
  const skill: ConfigFile = {
    path: join(folder, 'skills', 'memory-vault', 'SKILL.md'),
    format: whole,
    settings: [{ at: ['content'], value: readFileSync(pathTo('skill/SKILL.md'), 'utf8') }],
  }
  return [connection, started, skill].map(file => ({
    ...file,
    settings: file.settings.map(setting => ({ ...setting, way: 'plugin' })),
  }))
}

/** Adds a hook for each event behind those of the person. */
function hookSettings({ events, version }: ClientHooks, entry: Value, command: string): Setting[] {
  const hook = fill(entry, { command })
  const settings = [events.start, events.prompt, ...events.ends].map(event =>
    sharedSetting(['hooks', event], hookList, hook),
  )
  if (version === undefined) return settings
  const orPresent = (present: unknown): number => (typeof present === 'number' ? present : version)
  return [{ at: ['version'], value: orPresent }, ...settings]
}

/** Hooks of one event; ours start the program of this folder. */
const hookList: SharedValue = {
  read: present => (Array.isArray(present) ? (present as Value[]) : []),
  write: hooks => hooks,
  isOurs: hook => JSON.stringify(hook).includes(pathTo('main.ts')),
}

const nothing = (): undefined => undefined

/** The plug-in of opencode: both of its versions load each file of its folder of plug-ins. */
const pluginText = (): string =>
  [
    `import { memoryVault } from ${JSON.stringify(pathTo('opencode.ts'))}`,
    '',
    `export default memoryVault(${JSON.stringify(wordsOf('opencode'))})`,
    '',
  ].join('\n')
