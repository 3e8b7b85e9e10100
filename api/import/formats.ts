import { chatgpt } from '#api/import/formats/chatgpt.ts'
import { claude } from '#api/import/formats/claude.ts'
import { isObject } from '#api/import/formats/fields.ts'
import type { Format } from '#api/import/formats/format.ts'
import { gemini } from '#api/import/formats/gemini.ts'
import { langchain } from '#api/import/formats/langchain.ts'
import { langgraph } from '#api/import/formats/langgraph.ts'
import { letta } from '#api/import/formats/letta.ts'
import { librechat } from '#api/import/formats/librechat.ts'
import { mem0 } from '#api/import/formats/mem0.ts'
import { openWebui } from '#api/import/formats/open-webui.ts'
import { zep } from '#api/import/formats/zep.ts'

export type Formats = Readonly<Record<string, Format>>

/** The exports that can be imported from anywhere, also in a browser, by name. */
export const formats: Formats = {
  chatgpt,
  claude,
  gemini,
  'open-webui': openWebui,
  librechat,
  mem0,
  letta,
  langgraph,
  langchain,
  zep,
}

/** Returns the name of the first format that recognizes a value, or the first element of its first array. */
export function guessFormat(value: unknown, among: Formats = formats): string | undefined {
  if (!isObject(value)) return undefined
  const inner = Object.values(value).find(Array.isArray)?.[0] as unknown
  const candidates = [value, inner].filter(isObject)
  return Object.keys(among).find(name =>
    candidates.some(candidate => among[name]!.recognizes(candidate)),
  )
}
