import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  notesOf,
  programs,
  type Program,
  type ProgramFile,
  type Settings,
  type Value,
} from '#api/client/programs/programs.ts'
import { snippetsOf } from '#api/client/programs/snippets.ts'
import {
  findFolder,
  type Client,
  type ClientFile,
  type ConfigFile,
  type Folders,
  type Place,
  type Setting,
  type Vault,
  type Way,
} from '#scripts/clients/connect/client.ts'
import { fill } from '#scripts/clients/connect/fill.ts'
import { dotenv } from '#scripts/clients/connect/formats/dotenv.ts'
import type { FileFormat } from '#scripts/clients/connect/formats/file-format.ts'
import { jsonc } from '#scripts/clients/connect/formats/jsonc.ts'
import { toml } from '#scripts/clients/connect/formats/toml.ts'
import { memoryProof, toolsProof, type Proof } from '#scripts/clients/connect/prove.ts'
import {
  headerLines,
  serverList,
  sharedSetting,
  type SharedValue,
} from '#scripts/clients/connect/shared-values.ts'

/** Every program that can be connected, by the name that the command takes. */
export const clients: Record<string, Client> = Object.fromEntries(
  Object.entries(programs as Record<string, Program & Partial<Client>>)
    .filter((entry): entry is [string, Client] => entry[1].files !== undefined)
    .map(([id, client]) => [client.commandName ?? id, client]),
)

const formats: Record<ProgramFile['format'], FileFormat> = { json: jsonc, toml, env: dotenv }

/** The files that a client reads, with the settings that they may get. */
export const configFiles = (client: Client, vault: Vault, place: Place): ConfigFile[] =>
  client.files.map(file => {
    const settingsOf = (settings: Settings | undefined, way?: Exclude<Way, 'tools'>): Setting[] =>
      Object.entries(settings ?? {}).map(([path, value]) => ({
        ...toSetting(file, path, fill(value, { url: vault.baseUrl, key: vault.key })),
        ...(way && { way }),
      }))
    return {
      path: findFile(file, clientFolder(client, place, file.folders)),
      format: formats[file.format],
      settings: [
        ...settingsOf(file.models, 'models'),
        ...settingsOf(vault.rights === 'users' ? file.users : undefined),
        ...settingsOf(file.tools),
      ],
    }
  })

function toSetting(file: ProgramFile, path: string, value: Value): Setting {
  const shared = sharedValue(file, path)
  const at = path.split('.')
  return shared ? sharedSetting(at, shared, value) : { at, value }
}

/** How a setting holds parts of the person beside ours; undefined where it is ours alone. */
function sharedValue({ shared = {} }: ProgramFile, path: string): SharedValue | undefined {
  const separator = shared[path]
  if (separator === undefined) return undefined
  return separator === 'json' ? serverList(path) : headerLines(separator)
}

/** The folder of a client, or of one of its files that stands elsewhere. */
export function clientFolder({ folders }: Client, place: Place, own?: Folders): string {
  const { configDir, platform } = place
  if (configDir !== undefined) return configDir
  if (own) return findFolder(own, place)
  if (!('linux' in folders)) return findFolder(folders, place)
  return findFolder(platform in folders ? folders[platform as 'linux'] : folders.linux, place)
}

const findFile = ({ names }: ClientFile, folder: string): string => {
  const paths = names.map(name => join(folder, name))
  return paths.find(path => existsSync(path)) ?? paths.at(-1)!
}

/**
 * Makes the calls to the service that a client will make, from what stands in its files.
 *
 * @param texts those of the files, in the order of the client
 */
export const proofsOf = ({ files }: Client, texts: readonly string[], vault: Vault): Proof[] =>
  files.flatMap((file, index) => {
    const read = (path: string): unknown => {
      const value = formats[file.format].get(texts[index]!, path.split('.'))
      const shared = sharedValue(file, path)
      return shared ? shared.read(value).find(part => shared.isOurs(part)) : value
    }
    const { url, key, tools } = file.proof
    const proofs: Proof[] = []
    if (url && key) proofs.push(memoryProof(read(url), keyIn(read(key)), vault.rights))
    if (tools === 'beside')
      proofs.push(toolsProof({ url: `${String(read(url!))}/mcp`, key: read(key!) }))
    else if (tools) proofs.push(toolsProof(read(tools)))
    return proofs
  })

/** The Memory Key in a value: alone, in a header, or in a table of headers. */
const keyIn = (value: unknown): string => /mk_[\w:-]+/.exec(JSON.stringify(value) ?? '')?.[0] ?? ''

/** What a person has to know or do besides. */
export function notesFor(client: Client, { rights, baseUrl, key }: Vault): string[] {
  const { hostname, port, protocol } = new URL(baseUrl)
  const address = `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`
  const snippets = snippetsOf(client, { url: baseUrl, key, rights })
  const texts = Object.fromEntries(snippets.map(({ file, text }) => [file, text]))
  return notesOf(client, 'command', rights).map(note => fill(note, { ...texts, address }))
}

/** Why the model calls of a client cannot go through the service, as things are; undefined where they can. */
export function whyNoModels(client: Client, place: Place): string | undefined {
  const { chatGptLogin } = client
  if (!chatGptLogin) return undefined
  const file = join(clientFolder(client, place), chatGptLogin.file)
  return existsSync(file) && hasChatGptLogin(readFileSync(file, 'utf8'))
    ? chatGptLogin.note
    : undefined
}

/** Whether a file says that Codex is signed in with ChatGPT: by `auth_mode`, and in older files by tokens without a key. */
function hasChatGptLogin(text: string): boolean {
  try {
    const auth = JSON.parse(text) as Record<string, unknown> | null
    const { auth_mode, tokens, OPENAI_API_KEY } = auth ?? {}
    return typeof auth_mode === 'string' ? auth_mode === 'chatgpt' : !!tokens && !OPENAI_API_KEY
  } catch {
    return false
  }
}
