import { chatgpt } from '#api/import/formats/chatgpt.ts'
import { claude } from '#api/import/formats/claude.ts'
import { claudeMemory } from '#api/import/formats/claude-memory.ts'
import { asList, isObject } from '#api/import/formats/fields.ts'
import type { Format } from '#api/import/formats/format.ts'
import { gemini } from '#api/import/formats/gemini.ts'
import { honcho } from '#api/import/formats/honcho.ts'
import { langchain } from '#api/import/formats/langchain.ts'
import { langgraph } from '#api/import/formats/langgraph.ts'
import { letta } from '#api/import/formats/letta.ts'
import { librechat } from '#api/import/formats/librechat.ts'
import { mem0 } from '#api/import/formats/mem0.ts'
import { basicMemory, markdown } from '#api/import/formats/notes.ts'
import { openWebui } from '#api/import/formats/open-webui.ts'
import { supermemory } from '#api/import/formats/supermemory.ts'
import { zep } from '#api/import/formats/zep.ts'

export type Formats = Readonly<Record<string, Format>>

/** The exports that can be imported from anywhere, also in a browser, by name. */
export const formats: Formats = {
  chatgpt,
  claude,
  gemini,
  'open-webui': openWebui,
  librechat,
  // Before mem0 and Zep, whose values have fewer fields.
  supermemory,
  honcho,
  mem0,
  letta,
  langgraph,
  langchain,
  zep,
  'claude-memory': claudeMemory,
  'basic-memory': basicMemory,
  markdown,
}

/** Returns the name of the first format that recognizes a value, or the first element of its first array that has any. */
export function guessFormat(value: unknown, among: Formats = formats): string | undefined {
  if (!isObject(value)) return undefined
  const inner: unknown = Object.values(value)
    .map(asList)
    .find(list => list.length > 0)?.[0]
  const candidates = [value, inner].filter(isObject)
  return Object.keys(among).find(name =>
    candidates.some(candidate => among[name]!.recognizes(candidate)),
  )
}
