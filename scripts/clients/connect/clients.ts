import { librechat, openWebui } from '#scripts/clients/connect/chat-uis.ts'
import type { Client } from '#scripts/clients/connect/client.ts'
import {
  claudeCode,
  codex,
  gemini,
  opencode,
  qwen,
} from '#scripts/clients/connect/coding-agents.ts'
import { cursor, vscode } from '#scripts/clients/connect/editors.ts'

/** Every program that can be connected, by the name that the command takes. */
export const clients: Record<string, Client> = {
  'claude-code': claudeCode,
  codex,
  gemini,
  qwen,
  opencode,
  cursor,
  vscode,
  'open-webui': openWebui,
  librechat,
}
