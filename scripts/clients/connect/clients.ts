import { claudeCode } from '#scripts/clients/connect/claude-code.ts'
import type { Client } from '#scripts/clients/connect/client.ts'
import { codex } from '#scripts/clients/connect/codex.ts'
import { cursor } from '#scripts/clients/connect/cursor.ts'
import { gemini } from '#scripts/clients/connect/gemini.ts'
import { openWebui } from '#scripts/clients/connect/open-webui.ts'
import { opencode } from '#scripts/clients/connect/opencode.ts'
import { vscode } from '#scripts/clients/connect/vscode.ts'

/** Every program that can be connected, by the name that the command takes. */
export const clients: Record<string, Client> = {
  'claude-code': claudeCode,
  codex,
  gemini,
  opencode,
  cursor,
  vscode,
  'open-webui': openWebui,
}
