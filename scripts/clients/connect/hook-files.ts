import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ConfigFile, Place, Setting, Vault } from '#scripts/clients/connect/client.ts'
import type { Value } from '#scripts/clients/connect/formats/file-format.ts'
import { jsonc } from '#scripts/clients/connect/formats/jsonc.ts'
import { whole } from '#scripts/clients/connect/formats/whole.ts'
import { connectionsFolder } from '#scripts/hooks/files.ts'

const root = new URL('../../hooks/', import.meta.url)
const pathTo = (name: string): string => fileURLToPath(new URL(name, root))

/** How a program starts the hooks, as words. */
const wordsOf = (client: string): string[] => [process.execPath, pathTo('main.ts'), 'run', client]

const quoted = (words: readonly string[]): string =>
  words.map(word => (/^[\w/.:+-]+$/.test(word) ? word : `"${word}"`)).join(' ')

/** Where a program reads hooks and skills. */
type Program = {
  /** The file of the hooks, and its settings. */
  hooks(place: Place, command: string): ConfigFile
  /** The folder of skills; undefined where the program reads none. */
  skills(place: Place): string
  /** What a person has to know or do. */
  notes: string[]
}

const seconds = 10

/** Adds a hook for each event behind those of the person. */
const hookSettings = (events: readonly string[], entry: Value, more: Setting[] = []): Setting[] => [
  ...more,
  ...events.map(event => ({
    at: ['hooks', event],
    value: (present: unknown) => [...othersOf(present), entry],
    without: (present: unknown) => (othersOf(present).length > 0 ? othersOf(present) : undefined),
  })),
]

/** The hooks of the person. */
const othersOf = (present: unknown): Value[] =>
  (Array.isArray(present) ? (present as Value[]) : []).filter(
    other => !JSON.stringify(other).includes(pathTo('main.ts')),
  )

const group = (command: string, timeout = seconds): Value => ({
  hooks: [{ type: 'command', command, timeout }],
})

const claudeFolder = ({ env, home, configDir }: Place): string =>
  configDir ?? env.CLAUDE_CONFIG_DIR ?? join(home, '.claude')
const codexFolder = ({ env, home, configDir }: Place): string =>
  configDir ?? env.CODEX_HOME ?? join(home, '.codex')
const geminiFolder = ({ env, home, configDir }: Place): string =>
  configDir ?? join(env.GEMINI_CLI_HOME ?? home, '.gemini')
const qwenFolder = ({ env, home, configDir }: Place): string =>
  configDir ?? env.QWEN_HOME ?? join(home, '.qwen')
const opencodeFolder = ({ env, home, configDir }: Place): string =>
  configDir ?? join(env.XDG_CONFIG_HOME ?? join(home, '.config'), 'opencode')
const cursorFolder = ({ home, configDir }: Place): string => configDir ?? join(home, '.cursor')
const copilotFolder = ({ home }: Place): string => join(home, '.copilot')

const promptEvents = ['SessionStart', 'UserPromptSubmit', 'Stop']

/** The programs that run hooks, by the name that the command takes. */
const programs: Readonly<Record<string, Program>> = {
  'claude-code': {
    hooks: (place, command) => ({
      path: join(claudeFolder(place), 'settings.json'),
      format: jsonc,
      settings: hookSettings(promptEvents, group(command)),
    }),
    skills: place => join(claudeFolder(place), 'skills'),
    notes: ['Sessions that are open read their hooks when they are started again.'],
  },
  codex: {
    hooks: (place, command) => ({
      path: join(codexFolder(place), 'hooks.json'),
      format: jsonc,
      settings: hookSettings(promptEvents, group(command)),
    }),
    skills: place => join(codexFolder(place), 'skills'),
    notes: [
      'Codex runs new hooks only once you trust them: start it, enter /hooks and trust those of memory.',
    ],
  },
  gemini: {
    hooks: (place, command) => ({
      path: join(geminiFolder(place), 'settings.json'),
      format: jsonc,
      // Gemini CLI counts milliseconds.
      settings: hookSettings(
        ['SessionStart', 'BeforeAgent', 'AfterAgent'],
        group(command, seconds * 1000),
      ),
    }),
    skills: place => join(geminiFolder(place), 'skills'),
    notes: [],
  },
  qwen: {
    hooks: (place, command) => ({
      path: join(qwenFolder(place), 'settings.json'),
      format: jsonc,
      settings: hookSettings(promptEvents, group(command)),
    }),
    skills: place => join(qwenFolder(place), 'skills'),
    notes: [],
  },
  opencode: {
    hooks: place => ({
      path: join(opencodeFolder(place), 'plugins', 'memory-vault.js'),
      format: whole,
      // A plug-in of ours that was changed still starts the hooks.
      settings: [{ at: ['content'], value: pluginText(), without: nothing }],
    }),
    skills: place => join(opencodeFolder(place), 'skills'),
    notes: [],
  },
  cursor: {
    hooks: (place, command) => ({
      path: join(cursorFolder(place), 'hooks.json'),
      format: jsonc,
      settings: hookSettings(
        ['sessionStart', 'beforeSubmitPrompt', 'afterAgentResponse', 'stop'],
        { command },
        [{ at: ['version'], value: present => (typeof present === 'number' ? present : 1) }],
      ),
    }),
    skills: place => join(cursorFolder(place), 'skills'),
    notes: [
      'Cursor documents what a hook tells the model for the start of a session only; at each prompt it depends on the build.',
    ],
  },
  vscode: {
    hooks: (place, command) => ({
      path: join(copilotFolder(place), 'hooks', 'memory-vault.json'),
      format: jsonc,
      settings: hookSettings(promptEvents, { type: 'command', command, timeout: seconds }, [
        { at: ['version'], value: 1 },
      ]),
    }),
    skills: place => join(copilotFolder(place), 'skills'),
    notes: [
      'Hooks of VS Code are a preview, which an organization may have turned off; Copilot CLI reads the same file.',
    ],
  },
}

const nothing = (): undefined => undefined

/** Both versions of opencode load each file of its folder of plug-ins. */
const pluginText = (): string =>
  [
    `import { memoryVault } from ${JSON.stringify(pathTo('opencode.ts'))}`,
    '',
    `export default memoryVault(${JSON.stringify(wordsOf('opencode'))})`,
    '',
  ].join('\n')

export const hasHooks = (client: string): boolean => Object.hasOwn(programs, client)

export const hookNotes = (client: string): string[] => [
  ...programs[client]!.notes,
  `What the hooks have recalled and stored: ${quoted([process.execPath, pathTo('main.ts')])} status`,
]

/** The files of a program's hooks: the hooks, the service and key that they use, and a skill that says when to use its tools. */
export function hookFiles(client: string, { baseUrl, key }: Vault, place: Place): ConfigFile[] {
  const { hooks, skills } = programs[client]!
  const connection: ConfigFile = {
    path: join(connectionsFolder(place.env, place.home), `${client}.json`),
    format: jsonc,
    settings: [
      { at: ['base_url'], value: baseUrl, without: nothing },
      { at: ['key'], value: key, without: nothing },
    ],
  }
  const skill: ConfigFile = {
    path: join(skills(place), 'memory-vault', 'SKILL.md'),
    format: whole,
    settings: [{ at: ['content'], value: readFileSync(pathTo('skill/SKILL.md'), 'utf8') }],
  }
  return [connection, hooks(place, hookCommand(client)), skill].map(file => ({
    ...file,
    settings: file.settings.map(setting => ({ ...setting, way: 'plugin' })),
  }))
}

/** How a program's shell starts its hooks. */
export const hookCommand = (client: string): string => quoted(wordsOf(client))
