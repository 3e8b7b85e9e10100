import { useState } from 'preact/hooks'
import { useAsked, useDoing } from '#api/console/app/asked.ts'
import { call } from '#api/console/app/call.ts'
import { html, part, type View } from '#api/console/app/html.ts'
import { confirm } from '#api/console/app/parts/confirm.ts'
import { dialogForm } from '#api/console/app/parts/dialog.ts'
import { choiceField, textField } from '#api/console/app/parts/fields.ts'
import { shown } from '#api/console/app/parts/states.ts'
import { say } from '#api/console/app/said.ts'
import { shortDayOf } from '#api/console/app/words.ts'

export const providers = [
  'openai',
  'anthropic',
  'google',
  'openrouter',
  'xai',
  'deepseek',
  'mistral',
  'groq',
  'cerebras',
  'together',
  'fireworks',
  'ollama',
] as const

type Provider = (typeof providers)[number]

/** The account's own keys for model providers: kept sealed, and never shown again. */
export function ProviderKeys(): View {
  const [adding, setAdding] = useState(false)
  const [removing, setRemoving] = useState<Provider>()
  const asked = useAsked(signal => call('GET /v1/account/provider-keys', {}, signal), [])
  return html`<div class="panel stack">
    ${shown(asked, 'provider keys', ({ provider_keys: keys }) =>
      keys.length === 0
        ? html`<p class="quiet">The account has none: model calls bring their own.</p>`
        : html`<ul class="plain rows">
            ${keys.map(
              ({ provider, masked_key, updated_at }) =>
                html`<li key=${provider} class="row">
                  <div class="row-main">
                    <p class="row-title">${provider} <code>${masked_key}</code></p>
                    <p class="quiet">Since ${shortDayOf(updated_at)}</p>
                  </div>
                  <button
                    type="button"
                    class="button"
                    aria-label=${`Forget the key for ${provider}`}
                    onClick=${() => setRemoving(provider)}
                  >
                    Forget
                  </button>
                </li>`,
            )}
          </ul>`,
    )}
    <div class="actions">
      <button type="button" class="button" onClick=${() => setAdding(true)}>
        Add a provider key
      </button>
    </div>
    ${adding && part(AddForm, { onClose: () => setAdding(false), onAdded: asked.again })}
    ${
      removing &&
      confirm({
        title: `Forget the key for ${removing}?`,
        words: html`<p>Model calls of every Memory Key of the account stop using it at once.</p>`,
        verb: 'Forget',
        act: async () => {
          await call('DELETE /v1/account/provider-keys/:provider', {
            params: { provider: removing },
          })
          say('The key is forgotten.')
          asked.again()
        },
        onClose: () => setRemoving(undefined),
      })
    }
  </div>`
}

function AddForm({ onClose, onAdded }: { onClose: () => void; onAdded: () => void }): View {
  const [provider, setProvider] = useState<Provider>('openai')
  const [key, setKey] = useState('')
  const doing = useDoing()
  return dialogForm({
    title: 'Add a provider key',
    verb: 'Save',
    doing,
    onClose,
    act: async () => {
      const request = { params: { provider }, body: { key: key.trim() } }
      await call('PUT /v1/account/provider-keys/:provider', request)
      say('The key is kept.')
      onAdded()
    },
    fields: html`<div class="stack">
      ${choiceField({
        label: 'Provider',
        value: provider,
        onValue: setProvider,
        choices: providers.map(each => [each, each] as const),
      })}
      ${textField({
        label: 'Key',
        type: 'password',
        value: key,
        onValue: setKey,
        required: true,
        autocomplete: 'off',
        hint: 'It takes the place of the one before.',
      })}
    </div>`,
  })
}
