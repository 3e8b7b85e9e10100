import { configText } from './config-texts.ts'
import type { ClientRights, PastedText, Program, ProgramFile } from './programs.ts'

/** The service and the key that a snippet names; no slash at the end of the address. */
type Place = { url: string; key: string; rights: ClientRights }

/** A file, or a piece of a program, to copy. */
export type Snippet = { file: string; text: string }

/** What a person copies for a program: its files, then what else is pasted. */
export function snippetsOf({ files = [], snippets = [] }: Program, place: Place): Snippet[] {
  const { url, key, rights } = place
  const pasted = snippets.filter(({ only }) => only === undefined || only === rights)
  return [
    ...files.map(file => ({ file: file.shown, text: fileText(file, rights) })),
    ...pasted.map(one => ({ file: one.file, text: pastedText(one, rights) })),
  ].map(({ file, text }) => ({
    file,
    text: text.replaceAll('{url}', url).replaceAll('{key}', key),
  }))
}

/** A file without the lists that a variable holds as JSON: only the command adds to such a list. */
function fileText(
  { format, models, users, tools, shared }: ProgramFile,
  rights: ClientRights,
): string {
  const all = { ...models, ...(rights === 'users' && users), ...tools }
  const settings = Object.entries(all).filter(([path]) => shared?.[path] !== 'json')
  return configText[format](Object.fromEntries(settings))
}

function pastedText({ lines, json }: PastedText, rights: ClientRights): string {
  if (!lines) return JSON.stringify(json, null, 2)
  return lines
    .map(line => (typeof line === 'string' ? line : rights === 'users' && line.users))
    .filter(line => line !== false)
    .join('\n')
}
