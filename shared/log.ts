import pino, { type Logger } from 'pino'

export type Log = Logger

/**
 * One JSON line per event: `log.info({ ids and counts }, 'noun.verb')`. Texts, keys and vectors are
 * never fields; the redaction is a second fence for the day one slips in.
 */
export function createLog(level: string, name: string): Log {
  return pino({
    name,
    level,
    base: { name },
    redact: {
      paths: [
        'text',
        'content',
        'messages',
        'key',
        'authorization',
        'headers',
        '*.text',
        '*.content',
      ],
      censor: '[redacted]',
    },
  })
}
