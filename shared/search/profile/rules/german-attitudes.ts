import { compileRules } from '#shared/search/profile/rules/rule.ts'

/** What is liked at this moment says nothing that lasts. */
const lasting = '(?!(?:das|dies|es|dich|sie|ihn|wie|dass|diese[a-z]{0,2})(?![a-zß-ɏ]))'

export const germanAttitudes = compileRules('', [
  { kind: 'preference', cues: 'liebsten', pattern: 'am liebsten [a-zß-ɏ]' },
  {
    kind: 'preference',
    cues: 'vertrage',
    pattern: 'ich vertrage (?:kein|keine|keinen|nichts) ?[a-zß-ɏ]',
  },
  {
    kind: 'possession',
    cues: 'gekauft zugelegt',
    pattern:
      '(?:ich habe|wir haben) (?:mir |uns )?(?:eine?n?|zwei) [^.;]{2,50} (?:gekauft|zugelegt){end}',
  },
  {
    kind: 'change',
    cues: 'früher',
    pattern:
      'früher (?:habe|hatte|war|bin|haben|hatten|waren) (?:ich|wir){end}|(?:ich|wir) (?:habe|hatte|war|haben|hatten|waren) früher{end}',
  },
  {
    kind: 'change',
    cues: 'verschoben verlegt geändert',
    pattern:
      '(?:wurde|wird|ist) (?:[^.;]{0,30}? )?vo[nm] [^.;]{1,40}? auf [^.;]{1,40}? (?:verschoben|verlegt|geändert)',
  },
  {
    kind: 'preference',
    cues: 'bevorzuge lieber',
    pattern: `ich (?:bevorzuge ${lasting}|[a-zß-ɏ]{2,15} lieber )[a-zß-ɏ]`,
  },
  {
    kind: 'preference',
    cues: 'mein meine',
    pattern: '(?:mein|meine) (?<subject>lieblings[a-zß-ɏ]{2,20}) (?:ist|sind) {x}',
    subject: '{subject}',
  },
  {
    kind: 'preference',
    cues: 'allergisch unverträglichkeit allergie',
    pattern:
      'ich (?:bin [^,.;]{0,20}allergisch|habe eine [^,.;]{0,30}(?:allergie|unverträglichkeit))',
  },
  {
    kind: 'preference',
    cues: 'vegetarier vegetarierin veganer veganerin vegan',
    pattern: 'ich (?:bin|lebe|esse) (?:jetzt )?(?<value>vegetarier|veganer|vegan|vegetarisch)',
    subject: 'diet',
  },
  {
    kind: 'preference',
    cues: 'mag liebe hasse',
    pattern: `ich (?:mag|liebe|hasse) (?:keinen? |überhaupt keinen? )?${lasting}[a-zß-ɏ]{3}`,
  },
  {
    kind: 'preference',
    cues: 'esse trinke',
    pattern: 'ich (?:esse|trinke) (?:nie|kein|keine|keinen)(?! (?:mehr))(?![a-zß-ɏ])',
  },
  {
    kind: 'instruction',
    cues: 'jetzt sofort zukunft künftig',
    pattern:
      '(?:ab (?:jetzt|sofort|heute)|von nun an|in zukunft|künftig){end}(?! (?:wohne|lebe|bin))',
  },
  {
    kind: 'instruction',
    cues: 'immer nie niemals',
    pattern:
      '^(?:bitte |und |aber )?(?!(?:ich|wir|er|sie|es|der|die|das|du|ihr|man|mein|meine|unser|unsere|immer|nie|niemals|wann|wo|wie)(?![a-zß-ɏ]))[a-zß-ɏ]{2,15} (?:[^,.;]{1,30} )?(?:immer|nie|niemals){end}',
  },
  { kind: 'instruction', cues: 'hör höre', pattern: '^(?:bitte )?hör(?:e)? (?:bitte )?auf,? ' },
  { kind: 'possession', cues: 'fahre', pattern: 'ich fahre (?:einen?|ein) {x}', subject: 'car' },
  {
    kind: 'possession',
    cues: 'habe haben besitze',
    pattern:
      '(?:ich (?:habe|besitze)|wir (?:haben|besitzen)) (?:eine?n?|zwei|drei) (?:[a-zß-ɏ]{2,15} ){0,2}(?:hund|hunde|katze|katzen|kater|auto|fahrrad|motorrad|boot|haus|garten|wohnung|gitarre|klavier|kamera|pferd|wohnmobil|golf){end}',
  },
  {
    kind: 'change',
    cues: 'von vom',
    pattern:
      '(?:ich|wir|der|die|das)(?![a-zß-ɏ])[^.;]{0,50}? vo[nm] [^.;]{1,50}? (?:auf|nach|zu|zum|zur) [^.;]{1,50}? (?:verschoben|umgezogen|gezogen|gewechselt|umgestiegen|geändert|umgestellt)',
  },
  {
    kind: 'change',
    cues: 'mehr',
    pattern:
      '(?:ich|wir)(?![a-zß-ɏ])[^.;]{1,40}(?<![a-zß-ɏ])(?:nicht|kein|keine|keinen) (?:[a-zß-ɏ]{2,20} )?mehr{end}',
  },
  { kind: 'change', cues: 'aufgehört', pattern: '(?:ich habe|wir haben)[^.;]{1,50} aufgehört' },
  {
    kind: 'change',
    cues: 'mehr',
    pattern: 'ich arbeite nicht mehr (?:bei|für|beim) {x}',
    ends: { kind: 'role', subject: 'employer' },
  },
  {
    kind: 'change',
    cues: 'mehr',
    pattern: 'ich (?:wohne|lebe) nicht mehr in {x}',
    ends: { kind: 'place', subject: 'home' },
  },
])
