/** Every sender preset, by the name that configuration uses. */
import type { Sender } from '../core/sender.ts';
import { github } from './github.ts';
import { shopify } from './shopify.ts';
import { slack } from './slack.ts';
import { standardWebhooks } from './standard-webhooks.ts';
import { stripe } from './stripe.ts';
import { svix } from './svix.ts';

const all: readonly Sender[] = [github, shopify, slack, standardWebhooks, stripe, svix];

export const senders: ReadonlyMap<string, Sender> = new Map(all.map((sender) => [sender.name, sender]));
